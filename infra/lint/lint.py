"""Checks the templates: cfn-lint on each file as it is written, the SAM translator on template.yaml, and cfn-lint again
on what the translator made of it. Offline. Run it by make lint-infra."""
import json
import logging
import os
import pathlib
import subprocess
import sys

from cfnlint.decode.cfn_yaml import load
from samtranslator.translator.transform import transform

# The translator adds these by name to roles that it makes itself; ours are written out, so it must not need any.
POLICIES = {}
# What packaging does before: code and nested templates lie in a bucket when the translator sees the template.
PACKAGED = "s3://packaged/code.zip"
NESTED = "https://s3.amazonaws.com/packaged/nested.yaml"

os.environ["AWS_DEFAULT_REGION"] = "us-east-1"  # Only to know a partition; nothing is asked.
logging.getLogger("samtranslator").setLevel(logging.CRITICAL)  # It complains of its own metrics.
root = pathlib.Path(__file__).resolve().parents[2]
written = [root / "template.yaml", *sorted((root / "infra").glob("*.yaml"))]


class Loader:
    def load(self):
        return POLICIES


def lint(files):
    command = [str(pathlib.Path(sys.executable).parent / "cfn-lint"), "--", *map(str, files)]
    return subprocess.run(command, cwd=root).returncode


def parameters():
    """The values of infra/parameters, once for each size; what has none there gets its default."""
    for file in sorted((root / "infra" / "parameters").iterdir()):
        lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        yield file.name, dict(line.split("=", 1) for line in lines)


def translate(size, values):
    template = json.loads(json.dumps(load(str(root / "template.yaml"))))
    for name, parameter in template["Parameters"].items():
        if name not in values and "Default" not in parameter:
            values[name] = "x"
    for name in values:
        if name not in template["Parameters"]:
            sys.exit(f"infra/parameters/{size}: template.yaml has no parameter {name}")
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        if "CodeUri" in properties:
            properties["CodeUri"] = PACKAGED
        if "TemplateURL" in properties:  # Parameters and outputs were compared in what is written by hand.
            properties["TemplateURL"] = NESTED
    out = transform(template, values, Loader())
    file = root / "dist" / f"translated-{size}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(out, indent=1))
    made = len(out["Resources"])
    print(f"{file.relative_to(root)}: {made} resources")
    return file


failed = lint(written)
print(f"cfn-lint: {len(written)} files written by hand, exit status {failed}", flush=True)
for size, values in parameters():
    file = translate(size, values)
    status = lint([file])
    print(f"cfn-lint: {file.name}, exit status {status}")
    failed = failed or status
sys.exit(failed)
