//! `FG5xx`: certificates.

super::codes! {
    CERTIFICATE_MISSING = "FG501", "no certificate", "Every cluster has a CURVE certificate, which is an input like the spec: bundles are made from it and never invent one. With `secrets: plain` the bundle carries it, so it must be in the store. `flux-gen build` into a folder makes a missing one once; commands that only look (`check`, `diff`, `build --stdout`) do not. Make it with `flux-gen cert new`.";
    CERTIFICATE_UNUSABLE = "FG502", "certificate unusable", "The file in the certificate store is not a certificate that Flux accepts. Replace it with `flux-gen cert import` or `flux-gen cert new --replace`.";
    KEYS_DISAGREE = "FG503", "certificate is not the recorded one", "The certificate in the store has another public key than `certs/public.json` records. One of them is out of date; building with the wrong one would replace the key of a running cluster. Get the current certificate from whoever made it and run `flux-gen cert import`, or, if the one in the store is right, import that one with `--replace`.";
    CERTIFICATE_OPEN = "FG504", "certificate readable by others", "Whoever reads the certificate controls the cluster's Flux instance. Take the permission away: `chmod 600`.";
    PLAIN_SECRET_IN_GIT = "FG505", "private key would go into git", "With `secrets: plain` the bundle holds a Secret with the private key, and the output folder lies in a git work tree, so the next commit would publish it. Use `secrets: existing`, write elsewhere, or, if the repository may hold secrets, set `plain-secrets-in-git: true` in the project file.";
    PRIVATE_HALF_MISSING = "FG506", "private key not at hand", "Only the public half of the certificate is known here (from `certs/public.json`). That is enough for `secrets: existing`; a plain Secret needs the certificate itself. Import it with `flux-gen cert import`.";
    PUBLIC_KEYS_UNREADABLE = "FG507", "unreadable record of public keys", "`certs/public.json` records the public key of each cluster, so that bundles can be made where the private keys are not. It is not readable (a merge conflict, perhaps). Restore it from version control.";
    CERTIFICATE_EXISTS = "FG508", "certificate exists already", "The store holds a certificate for this cluster. A new one needs a new Secret and a restart of the cluster. Use `--replace` if that is meant.";
    STORE_FAILED = "FG509", "certificate store failed", "The operating system refused to read or write a file of the certificate store.";
}
