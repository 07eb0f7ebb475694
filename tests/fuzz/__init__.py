"""A fuzzer over every call of the services and every file format: docs/fuzzing.md."""
