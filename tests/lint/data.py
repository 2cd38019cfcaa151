"""JSON and YAML files can be read. Helm templates are no YAML before they are rendered."""

import json
import sys

import yaml


def strict_object(pairs):
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} is there twice")
    return dict(pairs)


def problem_in(path):
    """Returns (line, fault), or None."""
    try:
        with open(path, encoding="utf-8") as file:
            if path.endswith(".json"):
                json.load(file, object_pairs_hook=strict_object)
            else:
                list(yaml.safe_load_all(file))
    except json.JSONDecodeError as error:
        return error.lineno, error.msg
    except yaml.MarkedYAMLError as error:
        return error.problem_mark.line + 1, error.problem
    except (ValueError, yaml.YAMLError) as error:
        return 1, str(error)
    return None


def main():
    found = False
    for path in open(sys.argv[1], encoding="utf-8").read().splitlines():
        if not path.endswith((".json", ".yaml", ".yml")) or ("helm/" in path and "/templates/" in path):
            continue
        problem = problem_in(path)
        if problem:
            found = True
            print(f"{path}:{problem[0]}: {problem[1]}; fix the file")
    sys.exit(found)


main()
