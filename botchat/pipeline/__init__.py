"""The only room that joins the stages to disk and network: plan, run, resume, publish."""
