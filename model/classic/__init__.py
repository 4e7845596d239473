"""The classic group protocol: handlers of coordinator and member, their messages, rules, kernel and theorems.

Everything that only classic groups have lies here or in a folder `classic` of an engine.
"""
