"""The record of a controller's decisions: what each was decided on and what it was, in parts that change seldom."""
