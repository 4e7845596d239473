"""The conformance kit: scenarios, schedules, runs, analysis, reports, the zoo and the command line.

This layer joins the others: it chooses the requests to send, hands the traces to the judge and reports the verdicts.
Protocol rules never live here.
"""
