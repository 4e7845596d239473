"""The consistent region as a system to search: operators, their group, the bean, the region's controller.

The shipped handlers of `model/region` run in every state, and those of the classic coordinator. The holes of the design
are found as broken properties, each with a shortest run; small systems beside the main one have what it leaves out:
start positions, waiting times, settings.
"""
