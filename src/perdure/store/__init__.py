"""Postgres: who holds what, and the projection that lists read.

``tables`` says what there is; every other module is the queries of one subject. A function takes the transaction
it works in (``database.Database.transaction``) and never commits. No external call is made inside a transaction.
"""
