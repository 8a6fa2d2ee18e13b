# SPDX-License-Identifier: Apache-2.0
"""Options that are not on the command line: from environment variables, and from a file of settings.

A flag goes before a variable (``SHOAL_PARTITION_SEED`` for ``--partition-seed``), a variable before the file, and the
file before the default.  In the file a key at the top is for every command that has the option, one in a table such as
``[bfs]`` or ``[generate.rmat]`` for that command.

Values go through the same parsers as flags do.  Where one came from is kept, so that a complaint can name it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.errors import ArgumentError, check_choice
from shoal.machine import JOB_FOLDER, JOB_TIMEOUT

FILE = "shoal.toml"
PREFIX = "SHOAL_"
#: Variables with this prefix that are no options: where compiled code is kept, an MPI job's, and shoal's own tests'.
OTHER_VARIABLES = (
    "SHOAL_CACHE_DIR", JOB_FOLDER, JOB_TIMEOUT, "SHOAL_DATA", "SHOAL_SCREENSHOTS", "SHOAL_TEST_PRODUCT",
)  # fmt: skip
#: What says where settings are cannot itself stand in a file.
_CONFIG = "config"
_ORIGINS = "shoal.origins"
_BOOLEANS = ("true", "yes", "on", "1", "false", "no", "off", "0")

Settings = dict[str, tuple[Any, str]]  # for each option its value as text, and where it came from

logger = logging.getLogger("shoal.settings")


def apply(context: Any, path: str | None) -> str | None:
    """Make the settings the defaults of a command whose other options are still to be parsed."""
    if context.resilient_parsing:  # a shell asks for completions
        return path
    root = context.find_root().command
    settings = _from_file(context, root, path or os.environ.get(PREFIX + _CONFIG.upper())) | _from_environment(root)
    options = dict(_options_of(context.command))
    chosen = {key: setting for key, setting in settings.items() if key in options}
    context.default_map = {options[key].name: _fitting(key, options[key], *setting) for key, setting in chosen.items()}
    context.meta[_ORIGINS] = {options[key].name: origin for key, (_, origin) in chosen.items()}
    return path


def log(context: Any) -> None:
    """Log which options of a command come from elsewhere."""
    for name, origin in context.meta.get(_ORIGINS, {}).items():
        if _is_used(context, name):
            logger.info("%s=%s from %s", name, context.params.get(name), origin)


def explain(message: str, context: Any) -> str:
    """Put before a complaint the file or the variables that the values it names came from."""
    return _with_origins(message, re.findall(r"\b(\w+)=", message), context)


def explain_usage(message: str, error: Any) -> str:
    """Do the same for a complaint of the parser, about one option."""
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    return message if parameter is None or context is None else _with_origins(message, [parameter.name], context)


def _with_origins(message: str, names: list[str], context: Any) -> str:
    origins = context.meta.get(_ORIGINS, {})
    found = dict.fromkeys(origins[name] for name in names if name in origins and _is_used(context, name))
    return f"{', '.join(found)}: {message}" if found else message


def _is_used(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)  # None until the option has been parsed
    return source is None or source.name == "DEFAULT_MAP"


def _options_of(command: Any) -> Iterator[tuple[str, Any]]:
    """Yield the options of a command, or of all commands of a group, by their flags."""
    for inner in getattr(command, "commands", {}).values():
        yield from _options_of(inner)
    if hasattr(command, "commands"):
        return
    for parameter in command.params:
        key = max(parameter.opts, key=len).removeprefix("--").replace("-", "_")
        if parameter.param_type_name == "option" and key != _CONFIG:
            yield key, parameter


def _fitting(key: str, option: Any, value: Any, origin: str) -> Any:
    """Return a value as the option's parser wants it: a text, or a list of texts if it may be repeated."""
    if option.multiple:
        return value if isinstance(value, list) else [part.strip() for part in value.split(",")]
    if isinstance(value, list):
        raise ArgumentError(f"{origin}: {key}=[{', '.join(value)}] is not allowed; it must be one value")
    if option.is_flag:
        return check_choice(f"{origin}: {key}", value.lower(), _BOOLEANS) in _BOOLEANS[:4]
    return value


def _from_environment(root: Any) -> Settings:
    known = {PREFIX + key.upper(): key for key, _ in _options_of(root)}
    allowed = (*sorted(known), PREFIX + _CONFIG.upper(), *OTHER_VARIABLES)
    given = {name: value for name, value in os.environ.items() if name.startswith(PREFIX) and value}
    for name in given:
        check_choice("environment variable", name, allowed)
    return {known[name]: (value, name) for name, value in given.items() if name in known}


def _from_file(context: Any, root: Any, path: str | None) -> Settings:
    if path is None and not os.path.isfile(FILE):
        return {}
    origin = path or FILE
    tables, settings = [_load(origin)], {}
    _check_keys(tables[0], root, origin)
    for name in _command_names(context):
        tables.append(tables[-1].get(name) if isinstance(tables[-1].get(name), Mapping) else {})
    for table in tables:
        plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
        settings.update({key.replace("-", "_"): (_as_text(value), origin) for key, value in plain.items()})
    return settings


def _load(path: str) -> Any:
    from shoal.io.trees import read_toml

    try:
        return read_toml(path)
    except OSError as error:
        raise ArgumentError(f"config={path!r} cannot be read: {error.strerror}") from None


def _check_keys(table: Any, command: Any, place: str) -> None:
    """Refuse a key that no command has, and a table that is named like no command."""
    options = sorted({key for key, _ in _options_of(command)})
    commands = getattr(command, "commands", {})
    seen: set[str] = set()
    for key, value in table.items():
        if isinstance(value, Mapping):
            _check_keys(value, commands[check_choice(f"{place}: table", key, commands)], f"{place}, [{key}]")
            continue
        name = check_choice(f"{place}: option", key.replace("-", "_"), options)
        if name in seen:
            raise ArgumentError(f"{place}: {name}={value!r} is there twice, once with a dash")
        seen.add(name)


def _command_names(context: Any) -> list[str]:
    names = []
    while context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    return names[::-1]


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [str(_as_text(item)) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
