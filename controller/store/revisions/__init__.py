"""Revisions of the database's schema, for Alembic: each file brings a database from one version to the next.

``controller.store.migration`` runs them; ``controller/store/schema.py`` says how to add one.
"""
