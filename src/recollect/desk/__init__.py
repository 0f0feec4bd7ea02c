"""The recovery service: jobs, workers, mails, budgets. Knows no HTTP server and no clock; both come from above."""
