"""The requests and responses of all APIs: a module per API, found by the API's name."""
