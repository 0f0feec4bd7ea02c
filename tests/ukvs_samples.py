"""Maps as others wrote them down, for tests: the MementoMap paper's Figure 2 and the examples of the UKVS text.

Facts of those texts, retyped: https://github.com/oduwsdl/ORS/blob/master/ukvs.md and "MementoMap: An Archive
Profile Dissemination Framework" (2019), Figure 2; the older profile is Figure 1 of "Web archive profiling through
CDX summarization" (2015).
"""

FIGURE_2 = b"""\
!context ["https://git.io/mementomap"]
!id      {uri: "https://archive.example.org/"}
!fields  {keys: ["surt"], values: ["frequency"]}
!meta    {name: "Example Archive", year: 1996}
!meta    {type: "MementoMap"}
!meta    {updated_at: "2018-09-03T13:27:52Z"}
*                   54321/20000
com,*               10000+
org,arxiv)/         100
org,arxiv)/*        2500~/900
org,arxiv)/pdf/*    0
uk,co,bbc)/images/* 300+/20-
"""

_FIELDS = b'!fields {keys: ["surt"], values: ["frequency"]}\n'

UKVS_TEXT = {
    "people": b"""\
!fields {keys: ["lname", "fname"], values: ["qualification", "profession"]}
Doe   Jane    PhD     Professor             {home: "https://example.edu/members/jdoe"}
Doe   John    Masters "Business Consultant"
Roe   Richard PhD     Scientist             {dob: "May 7, 1920", awards: ["Fiction 42", "Mad Scientist"]}
Shmoe Joe     -       Assistant
""",
    "simple": b"""\
!context ["http://oduwsdl.github.io/contexts/ukvs"]
!id {uri: "http://archive.example.org/"}
!fields {keys: ["surt"], values: ["frequency"]}
!meta {type: "MementoMap", name: "A Test Web Archive", year: 1996}
!meta {updated_at: "2018-09-03T13:27:52Z"}
*                   54321
com,*               10000
com,twitter)/       100
com,twitter)/*      250
uk,co,bbc)/images/* 300
""",
    "frequencies": b"""\
com,apple)/*    300
com,cnn)/*      400/100
com,example)/*  200/
com,facebook)/* /50
com,google)/*   /
com,twitter)/*  0
""",
    "exclusions": b"com,cnn)/*          400\ncom,cnn)/profiles/* 0\ncom,cnn)/world      0\n",
    "blocked": b"com,yahoo)/* 0/20\n",
    "bounds": b"com,apple)/*    300\ncom,cnn)/*      400+/100\ncom,example)/*  200-/150~\ncom,facebook)/* /50+\n",
    "years in JSON": _FIELDS + b'com,twitter)/* 100/35 {datetime: {"2014": "20~/10", "2015": "60+/30+"}}\n',
    "years in a column": b"""\
!fields {keys: ["surt", "datetime"], values: ["frequency"]}
com,twitter)/* :    100/35
com,twitter)/* 2014 20~/10
com,twitter)/* 2015 60+/30+
""",
}

OLD_PROFILE = b"""\
@context https://oduwsdl.github.io/contexts/archiveprofile.jsonld
@id http://www.webarchive.org.uk/ukwa/
@about {"name": "UKWA 1996 Collection", "type": "urikey#H3P1", "...": "..."}
com,dilos)/region {"frequency": 14, "spread": 2}
edu,orst)/groups {"frequency": 3, "spread": 1}
uk,ac,rpms)/ {"frequency": 124, "spread": 3}
uk,co,bbc)/images {"frequency": 152, "spread": 3}
"""
