"""The enumerations of a recovery: what behaviour depends on, and what journals, reports and programs record.

Hides nothing. Each value is the word that is stored and printed; sentences for people are made at the edge. Journals
of older versions are read: every word they hold is a value here.
"""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Why a capture is not used for the resource."""

    SOFT_404 = "soft-404"
    PARKED = "parked"
    HIJACKED = "hijacked"
    REDIRECTED_AWAY = "redirected-away"
    LOGIN = "login"
    COOKIE_WALL = "cookie-wall"
    ANTI_BOT = "anti-bot"
    LEADS_NOWHERE = "leads-nowhere"  # a front page without a link to any page of the site
    FOREIGN = "foreign"  # links, title, text and structure are not those of the site
    ERROR_PAGE = "error-page"  # a server's or a program's error, sent as a page
    SUSPENDED = "suspended"  # a page of the host: the account is suspended
    DOMAIN_EXPIRED = "domain-expired"  # a page of the registrar: the registration has ended
    DEFAULT_PAGE = "default-page"  # a page of a web server without a site
    MAINTENANCE = "maintenance"  # a page that says the site is being worked on
    RENDERING = "rendering"  # an HTML page that an archive or a server made of a document (McCown 2007, III.3.3)
    REDUCED = "reduced"  # an image far smaller than another archive's capture of it: a thumbnail
    ERROR_STATUS = "error-status"
    OTHER_SPELLING = "other-spelling"  # a redirect to another spelling of the same URL
    AFTER_THE_END = "after-the-end"  # captured only when the site was no longer its owner's
    DIGEST_DIFFERS = "digest-differs"
    DROPPED = "dropped"  # rejected by a person in a review


# Content that may be the page after all: the best of such captures is kept for review when a page has no other.
SUSPECT = frozenset(
    {
        *(Verdict.SOFT_404, Verdict.PARKED, Verdict.HIJACKED, Verdict.LOGIN, Verdict.COOKIE_WALL, Verdict.ANTI_BOT),
        *(Verdict.LEADS_NOWHERE, Verdict.FOREIGN, Verdict.ERROR_PAGE, Verdict.RENDERING),
        *(Verdict.SUSPENDED, Verdict.DOMAIN_EXPIRED, Verdict.DEFAULT_PAGE, Verdict.MAINTENANCE),
    }
)
# In place of the site, and of no owner.
PLACEHOLDERS = frozenset({Verdict.PARKED, Verdict.SUSPENDED, Verdict.DOMAIN_EXPIRED, Verdict.DEFAULT_PAGE})
# What these say is said of the owner of the page, not of the page.
ABOUT_THE_OWNER = PLACEHOLDERS | {Verdict.HIJACKED, Verdict.FOREIGN}
# A front page of this kind is the end of the site, when older captures are good.
ENDS_A_SITE = ABOUT_THE_OWNER
# Content of another owner, or of none: such an address is not one of the lost site's.
FOREIGN = ABOUT_THE_OWNER | {Verdict.AFTER_THE_END}


class Decision(StrEnum):
    """What a person says of a doubtful page."""

    MINE = "mine"
    NOT_MINE = "not-mine"


class Reason(StrEnum):
    """Why a resource is missing."""

    NEVER_ARCHIVED = "never-archived"
    BLOCKED = "blocked"
    FAILED = "failed"
    OUT_OF_QUOTA = "out-of-quota"
    REJECTED = "rejected"
    OUT_OF_RANGE = "out-of-range"


# A later run tries these again: they can change without the archives' listings changing.
RETRIED = frozenset({Reason.FAILED, Reason.OUT_OF_QUOTA})


class Stage(StrEnum):
    """What a recovery is doing."""

    LISTING = "listing"
    RECOVERING = "recovering"
    WAITING = "waiting"  # for the next period of a quota
    DONE = "done"


class Stop(StrEnum):
    """Why a run ended before its frontier was empty."""

    ASKED = "asked"  # the caller's stop check, a stop file
    LIMIT = "limit"  # as many resources as were wanted
    DECLINED = "declined"  # the survey was shown, and the user did not want to go on
