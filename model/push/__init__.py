"""The push coordinator of the 0.9 consumer rewrite (draft revision 19) as pure functions on frozen values.

One broker is elected through ZooKeeper; consumers register with it once, and from then on it tells them what to do.
Handlers of the coordinator and of the consumer are here, with the rule that applied, the dialect (as drafted, or with
each repair), the table of rules and the messages on the wire. Time, choices and faults are inputs. Sockets, clocks, and
what search and proof do with the handlers do not belong here.
"""
