"""What people run: scenarios, the runner, reports, the command line.

This room joins the others: it chooses what to send, hands the resulting traces to the judge and tells a
person what came of it. Protocol rules never live here.
"""
