"""Writes an OCI image layout: layout.py FOLDER LAYER.tar..."""

import hashlib
import json
import os
import shutil
import sys

folder, layers = sys.argv[1], sys.argv[2:]
blobs = os.path.join(folder, "blobs", "sha256")
os.makedirs(blobs)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def put(value, kind):
    text = json.dumps(value).encode()
    name = hashlib.sha256(text).hexdigest()
    with open(os.path.join(blobs, name), "wb") as file:
        file.write(text)
    return {"mediaType": f"application/vnd.oci.image.{kind}.v1+json", "digest": f"sha256:{name}", "size": len(text)}


descriptors, diff_ids = [], []
for layer in layers:
    name = digest(layer)
    shutil.copyfile(layer, os.path.join(blobs, name))
    kind = "application/vnd.oci.image.layer.v1.tar"
    descriptors.append({"mediaType": kind, "digest": f"sha256:{name}", "size": os.path.getsize(layer)})
    diff_ids.append(f"sha256:{name}")
rootfs = {"type": "layers", "diff_ids": diff_ids}
config = put({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}, "config")
kind = "application/vnd.oci.image.manifest.v1+json"
manifest = put({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": descriptors}, "manifest")
manifest["annotations"] = {"org.opencontainers.image.ref.name": "bench"}
with open(os.path.join(folder, "index.json"), "w", encoding="ascii") as file:
    json.dump({"schemaVersion": 2, "manifests": [manifest]}, file)
with open(os.path.join(folder, "oci-layout"), "w", encoding="ascii") as file:
    file.write('{"imageLayoutVersion":"1.0.0"}')
