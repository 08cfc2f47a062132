"""From a Python file to the pipelines it declares."""

import importlib.util
import sys
import traceback
from pathlib import Path

from ottla.pipelines.definition import InvalidPipeline, PipelineDefinition


def load_pipelines(path: Path) -> tuple[PipelineDefinition, ...]:
    """Run a file, and return the pipelines among its names, in their order."""
    spec = importlib.util.spec_from_file_location(f"ottla_pipelines_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidPipeline(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # What lies beside the file can be imported, as for a script.
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except InvalidPipeline:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InvalidPipeline(f"cannot load {path}: {what} ({_place(error)})") from error
    found = {id(item): item for item in vars(module).values() if isinstance(item, PipelineDefinition)}
    pipelines = tuple(found.values())
    if not pipelines:
        raise InvalidPipeline(f"{path} declares no pipeline: decorate a function with @pipeline")
    names = [item.name for item in pipelines]
    for name in names:
        if names.count(name) > 1:
            raise InvalidPipeline(f"{path} declares pipeline {name!r} twice")
    return pipelines


def _place(error: Exception) -> str:
    """Say where something went wrong. It may be in a module that the file imports."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}"
