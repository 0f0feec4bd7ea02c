"""Pages that hosts show in place of a site, in the words of many hosts, and pages that only talk of such things."""

from __future__ import annotations

import pytest

from recollect.recovery.judge import judge
from recollect.recovery.links import read_document

URI = "http://choir.example/"
DEFAULT = [
    "<title>Welcome to nginx!</title><p>If you see this page, the nginx web server is successfully installed.",
    "<title>Apache2 Debian Default Page: It works</title><p>" + "This is the default welcome page used to test. " * 60,
    "<title>Apache2 Ubuntu Default Page: It works</title>",
    '<title>IIS Windows Server</title><a href="http://go.microsoft.com/fwlink/?linkid=66"><img src="iis-85.png"></a>',
    "<title>Default Web Site Page</title><h1>SORRY!</h1><p>Please contact your hosting provider. The IP has changed.",
    '<meta http-equiv="refresh" content="0;URL=/cgi-sys/defaultwebpage.cgi">',
    "<title>Domain Default page</title><h1>The website for choir.example is not available at this time.</h1>",
    "<title>Web Server's Default Page</title><p>You see this page because there is no Web site at this address.",
    "<title>choir.example</title><h1>Welcome</h1><p>This site is under construction. Powered by DirectAdmin",
    "<title>HTTP Server Test Page powered by: Rocky Linux</title><p>This page is used to test the proper operation of "
    "an HTTP server after it has been installed.",
    "<title>Congratulation! Your Web Server Is Running</title><p>OpenLiteSpeed",
    "<title>Welcome page</title><h1>Placeholder page</h1><p>The owner of this web site has not put up any pages yet.",
    "<title>Apache Tomcat/9.0.58</title><h2>If you're seeing this, you've successfully installed Tomcat.</h2>",
    "<h1>It works!</h1>",
    "<title>Default page</title><p>All you have to do now is upload your website files and start your journey.",
    "<title>Caddy works!</title><h1>Congratulations! Your web server is working.</h1>",
    '<title>Index of /</title><h1>Index of /</h1><a href="?C=N;O=D">Name</a><a href="/cgi-bin/">cgi-bin/</a>',
]
SUSPENDED = [
    "<title>Account Suspended</title><p>This Account has been suspended. Contact your hosting provider.",
    '<meta http-equiv="refresh" content="0;URL=http://choir.example/cgi-sys/suspendedpage.cgi">',
    "<title>Contact Support</title><p>This site has been temporarily disabled, please try again later.",
    "<title>Site suspended</title><p>If you are the site owner, please log in to your client area.",
    "<title>Website Offline</title><p>This website has been taken offline for non-payment. Please contact billing.",
    "<title>Gesperrt</title><h1>Diese Internetpr\u00e4senz wurde gesperrt</h1>",
    "<title>Hosting account has expired</title><p>Renew your hosting plan to bring it online.",
    "<title>Site Not Available</title><p>This site is no longer available. The owner's plan was suspended.",
    "<title>Not available</title><p>This blog has been archived or suspended in accordance with our Terms of Service.",
    "<title>509</title><p>Bandwidth limit exceeded. The server is temporarily unable to service your request.",
    "<title>Suspension</title><p>Votre h\u00e9bergement a \u00e9t\u00e9 suspendu",
]
MAINTENANCE = [
    "Briefly unavailable for scheduled maintenance. Check back in a minute.",
    "<title>Down for Maintenance</title><p>We are performing some work on our servers. Thank you for your patience.",
    "<title>Choir</title><h1>We\u2019ll be back soon!</h1><p>Sorry for the inconvenience.",
    "<title>Wartungsarbeiten</title><p>Diese Seite wird gerade gewartet.",
    "<title>Choir</title><p>Choir is currently under maintenance. We should be back shortly.",
    "<title>Maintenance</title><p>Scheduled maintenance until noon. The site is offline.",
]
EXPIRED = [
    "<title>choir.example</title><p>This domain has expired. If you owned it, contact your registrar.",
    "<title>Expired</title><p>The domain choir.example has expired on 2026-10-01. Renew now!",
    "<title>choir.example</title><p>The domain registration for choir.example has expired.",
]
OTHERS = [
    "<title>Green Hands: garden maintenance</title><p>We do garden maintenance work. Planned maintenance of lawns."
    "<a href=/prices>p</a><a href=/team>t</a>",
    "<title>Valley Bus</title><p>Service suspended on Sundays and in August. <a href=/times>t</a>",
    "<title>Suspended ceilings by Moor</title><p>We build suspended ceilings.",
    "<title>Index of /</title>" + "".join(f'<a href="/f{n}.iso">f{n}.iso</a>' for n in range(9)),
    "<title>What to do when your domain has expired</title><p>" + "When a domain has expired, pay the registrar. " * 60,
    "<title>It works! The Museum of Machines</title><p>Come and see machines. <a href=/hours>h</a>",
    "<title>Lifts Ltd</title><p>Lifts under maintenance contract. Routine maintenance. <a href=/contact>c</a>",
    "<title>Corner Store</title><p>The store is down the street. We will be back soon, in spring. <a href=/m>m</a>",
    "<title>Welcome to nginx tutorials</title><p>" + "Learn nginx. " * 20 + "<a href=/1>1</a><a href=/2>2</a>",
    "<title>A choir</title><p>Our account of the concert: the hall was locked, and the payment is in the hat.",
]
CASES = [
    (kind, number, page)
    for kind, pages in (
        ("default-page", DEFAULT),
        ("suspended", SUSPENDED),
        ("maintenance", MAINTENANCE),
        ("domain-expired", EXPIRED),
        (None, OTHERS),
    )
    for number, page in enumerate(pages)
]


@pytest.mark.parametrize(("kind", "page"), [(k, p) for k, _, p in CASES], ids=[f"{k}-{n}" for k, n, _ in CASES])
def test_pages_of_hosts_are_known_and_pages_about_them_stay(kind: str | None, page: str) -> None:
    found = judge(read_document(page.encode(), URI, "text/html; charset=utf-8"), URI, "text/html")
    assert (found.verdict.value if found is not None else None) == kind, found
