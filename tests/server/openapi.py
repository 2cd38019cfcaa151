"""Compares answers with their description in openapi.json. Standard library only."""


class Described:
    def __init__(self, document):
        self.document = document
        self.operations = [(method.upper(), path, operation) for path, of_path in document["paths"].items()
                           for method, operation in of_path.items()]

    def answer_of(self, operation_id, status=200):
        """Returns the schema of an operation's JSON."""
        operation = next(o for _, _, o in self.operations if o["operationId"] == operation_id)
        return operation["responses"][str(status)]["content"]["application/json"]["schema"]

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def conforms(self, value, schema, where, path=""):
        """Checks a value, with as much of JSON Schema as the document uses."""
        schema = self.resolve(schema)
        if "anyOf" in schema:
            if value is None and {"type": "null"} in schema["anyOf"]:
                return
            schema = self.resolve(schema["anyOf"][0])
        kinds = schema.get("type")
        if kinds is None:
            return
        kinds = kinds if isinstance(kinds, list) else [kinds]
        names = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}
        assert any(isinstance(value, names[kind]) and not (kind in ("integer", "number") and isinstance(value, bool)) for kind in kinds), \
            ("not of its type", path, value, kinds, where)
        if isinstance(value, dict):
            for name in schema.get("required", []):
                assert name in value, ("absent", path + "/" + name, where)
            known = schema.get("properties", {})
            for name, inner in value.items():
                if name in known:
                    self.conforms(inner, known[name], where, f"{path}/{name}")
                elif isinstance(schema.get("additionalProperties"), dict):
                    self.conforms(inner, schema["additionalProperties"], where, f"{path}/{name}")
                else:
                    assert schema.get("additionalProperties") is not False, ("unknown", path + "/" + name, where)
        if isinstance(value, list):
            for inner in value:
                self.conforms(inner, schema["items"], where, path + "/-")
        if isinstance(value, str) and "enum" in schema:
            assert value in schema["enum"], ("not listed", path, value, where)
