"""A Kafka consumer group in a consistent region of IBM Streams, as pure functions on frozen values.

Source operators of one job are the members of a group; the region drains, checkpoints and resets all of them together.
Handlers of the operator, the group bean and the region controller are here, with the rule that applied, the dialect (as
documented, or with each repair) and the table of rules. The classic coordinator is the group's. Time, choices and
faults are inputs. Sockets, clocks, and what search and proof do with the handlers do not belong here.
"""
