"""The addresses of the operator's pages; each family is a module of its own."""

from __future__ import annotations

from aiohttp import web

from recollect.desk.http import admin_blocks, admin_jobs, admin_machines, admin_statistics, session

ROUTES = [
    web.get("/admin/login", session.login_form),
    web.post("/admin/login", session.login),
    web.post("/admin/logout", session.logout),
    web.get("/admin", admin_jobs.jobs),
    web.get("/admin/jobs/{job}", admin_jobs.job),
    web.get("/admin/jobs/{job}/delete", admin_jobs.ask_to_delete),
    web.get("/admin/jobs/{job}/files/{file}", admin_jobs.job_file),
    web.post("/admin/jobs/{job}/{action}", admin_jobs.change_job),
    web.get("/admin/workers", admin_machines.workers),
    web.post("/admin/workers/{worker}/{action}", admin_machines.change_worker),
    web.post("/admin/tokens", admin_machines.add_token),
    web.post("/admin/tokens/{name}/remove", admin_machines.remove_token),
    web.get("/admin/archives", admin_machines.archives),
    web.post("/admin/archives/{archive}/{action}", admin_machines.change_archive),
    web.get("/admin/mails", admin_machines.mails),
    web.post("/admin/mails/{number:\\d+}/send", admin_machines.send_again),
    web.get("/admin/statistics", admin_statistics.show_statistics),
    web.get("/admin/history.{format:csv|json|xml}", admin_statistics.history),
    web.get("/admin/blocklist", admin_blocks.blocklist),
    web.post("/admin/blocklist", admin_blocks.block),
    web.post("/admin/blocklist/{number:\\d+}/remove", admin_blocks.unblock),
    web.get("/admin/takedowns", admin_blocks.takedowns),
    web.post("/admin/takedowns/{number:\\d+}/{action:block|decline}", admin_blocks.settle_takedown),
]
