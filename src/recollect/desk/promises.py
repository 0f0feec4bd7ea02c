"""What a desk promises to people, in the reader's language, made from its settings. Pure.

Hides nothing: whoever changes a setting changes the promise.
"""

from __future__ import annotations

from recollect.desk.settings import DAY, DeskSettings
from recollect.ui.messages import current


def mails(settings: DeskSettings) -> str:
    """Which mails come, and when the address is deleted."""
    texts = current()
    days = [str(round(one / DAY)) for one in (settings.first_reminder, settings.second_reminder, settings.last_notice)]
    words = texts.gettext(
        "You get one mail to confirm, one with the result, one more if an archive adds something later, "
        "and reminders after %(days)s days if you do not download it. "
        "We delete your address %(time)s after your download."
    )
    return words % {"days": ", ".join(dict.fromkeys(days)), "time": texts.duration(settings.forget_after)}
