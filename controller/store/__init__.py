"""The controller's database: jobs, measured profiles, the record of decisions, the audit trail, the leader's lease."""
