"""The trace pipeline on Spark: traces by the million, ingested into Parquet, judged and watched.

The only room that knows Spark, Arrow and Java. How a trace is read and judged never lives here: the functions of
`fencepost.traces` that read and judge one trace do it, on any number of machines.
"""
