"""All transformations and predicates."""

from typing import Final

from ottla.connect.transforms import fields, predicates, routing, times, unwrapping

PLUGINS: Final = (*routing.PLUGINS, *fields.PLUGINS, *times.PLUGINS, *unwrapping.PLUGINS, *predicates.PLUGINS)
