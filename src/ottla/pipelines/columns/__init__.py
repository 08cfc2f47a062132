"""Record batches to and from Arrow columns, all records of a fetch or of a request at a time.

NumPy and Arrow do the work; no Python object is made for a record. Spark is not known here.
"""
