"""The REST API: routes, parameters and answers of Confluent's registry."""
