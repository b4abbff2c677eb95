//! `FG80x to FG84x`: view images: views, recipes, trees, layers, the contract.

super::codes! {
    NO_VIEW = "FG801", "no such view", "A view is a folder `views/<name>/` with a file `view.yaml` beside the project file. `flux-gen view list` shows those that there are.";
    BAD_PLATFORM = "FG802", "not a platform", "A platform is an operating system and an architecture as OCI images name them: `linux/amd64`, `linux/arm64`. Views are for Linux.";
    BAD_BASE = "FG803", "not a base", "`base` is `scratch` or an image by digest, `registry/name@sha256:...`, because a tag may become another image. A view on `scratch` needs a static helper for each platform, which the init container of a bundle runs to fill the shared volume.";
    BAD_RECIPE = "FG804", "recipe that does not fit", "A recipe of kind `tree` has a source for each platform of the view; one of kind `image` has an image for all or for each. Fields of another kind have no meaning.";
    NOT_COMPILED = "FG805", "tree that is not compiled yet", "The recipe of the view compiles Flux (kind `source` or `spack`), and its tree is not in the cache. `flux-gen recipe build` compiles it in a container; the message has the whole command. `os` of the view is the system of the recipe.";
    BAD_TAG = "FG806", "not a tag", "A tag has up to 128 letters, digits, `_`, `.` and `-`, and begins with none of the last two (OCI distribution specification). Each may be given once.";
    BAD_LAYER_RULE = "FG807", "layer rule that does not fit", "A layer rule has a name of its own and names packages or paths. Patterns take `*`, `**` and `?`.";
    BAD_CHOICE = "FG808", "word that is not known here", "The field takes one of a few words, which the help line lists.";
    BAD_NUMBER = "FG809", "number out of range", "The help line says what the number may be. Kubernetes' container runtimes take up to 127 layers; flux-gen allows 100.";
    TREE_UNREADABLE = "FG811", "tree that cannot be read", "The folder or archive that the recipe names is not there, cannot be read, or is damaged. Archives are tar, plain or compressed with gzip or zstd.";
    BAD_NAME = "FG812", "name that cannot be packed", "A name in the tree climbs with `..`, is too long, or lies below something that is no folder. flux-gen never unpacks archives, so such a name can do no harm here, but the image would be unusable or harmful elsewhere.";
    SPECIAL_FILE = "FG813", "device, pipe or socket", "A view holds files, folders and links only.";
    WHITEOUT = "FG814", "whiteout in a tree", "Names that begin with `.wh.` hide other files in the layers of an image, so a file of such a name cannot be in one.";
    DUPLICATE = "FG815", "name twice in an archive", "Which of two entries with the same name counts depends on the reader. Make the archive anew.";
    SETUID = "FG816", "set-user-id or set-group-id bit", "Programs with these bits get rights that the container may not want to give. Say with `setuid: drop` or `setuid: keep` what is meant.";
    LINK_OUT = "FG817", "link out of the view", "In the pods of a bundle only `/opt/software` and `/opt/views` of the view are there. A link that leads elsewhere leads to what the application's image happens to have.";
    BAD_ARCHIVE = "FG818", "archive entry that cannot be read", "An entry of the archive is of a kind that flux-gen does not read: sparse, a hard link to nothing, or unknown.";
    PACK_FAILED = "FG821", "packing failed", "The tree could not be read to its end, changed while it was read, or the layout could not be written. What was there before is unchanged, and what was begun is removed.";
    HELPER = "FG822", "helper that cannot be used", "The helper of a view on `scratch` is a static program for the platform that answers to the names of the usual small programs, such as busybox from Debian's package busybox-static.";
    BASE_UNUSABLE = "FG823", "image that cannot be used", "The base or the image of the recipe could not be read, or has no image for a platform of the view.";
    SMALL_BUDGET = "FG824", "more layer rules than layers", "Each layer rule makes a layer of its own, and one more is for the view itself. Raise `budget` or join rules.";
    LAYOUT = "FG831", "not laid out as a view", "A view has real folders `/opt/views` and `/opt/software`, its tree in `/opt/views/._view/<hash>`, and `/opt/view` as a relative link to it. Bundles mount the two folders and look for the tree there.";
    ABSOLUTE_LINK = "FG832", "absolute link", "An absolute link works only while the view is mounted at the path it was made for. flux-gen packs relative links.";
    WRONG_MACHINE = "FG833", "program for another machine", "A program or library in the tree is for another architecture than the image says.";
    INTERPRETER = "FG834", "loader that is not there", "A program names a dynamic loader that is neither in the view nor the one that every glibc system of the architecture has, so it cannot start.";
    MISSING_LIBRARY = "FG835", "library that the view does not hold", "A program or library needs another library that is not found on its search path (RPATH, RUNPATH) in the view. Bundles set no LD_LIBRARY_PATH for brokers and jobs, because it would reach the application too. glibc's own libraries come with the application's image. Add the library, link with `-Wl,-rpath`, or list the library in `provided` when every application image has it.";
    NEWER_GLIBC = "FG836", "newer glibc than promised", "The view promises with `glibc` to run with that version, and a file in it needs a newer one. Compile on an older system, or raise the promise.";
    BAD_LABEL = "FG837", "label that is missing or wrong", "The labels `dev.flux-gen.view.*` tell which Flux a view has and what it needs. They are made by `flux-gen view build`; an image without them works, and `view match` has to look into it.";
    PYTHON = "FG838", "python that is not complete", "`bin/python` and `bin/python3` of the view lead to the python it was built with, and the module `flux` is in its `site-packages`. Without them `flux` commands that are written in python fail.";
    NO_FLUX = "FG839", "no flux in the view", "A view has the program `bin/flux`. Without it a bundle's init container refuses the image.";
    SCRIPT = "FG840", "interpreter that is not there", "A script that may be run names an interpreter that neither the view holds nor every application's image has: in pods it would not start. Every image has sh and bash; python3 comes with the view.";
    UNKNOWN_VIEW = "FG841", "bundle names an unknown view", "`view:<name>` stands for the view in `views/<name>/`. The help line names those that there are.";
    NOT_PUSHED = "FG842", "view without a pin", "A bundle names a view's image by digest. `flux-gen view push` records it in `views/<name>/pushed.json`, which belongs into git.";
    PLATFORM_NOT_PUSHED = "FG843", "view without the platform", "`flux.arch` asks for an architecture that the pushed view does not have.";
    DOES_NOT_FIT = "FG844", "view that does not fit", "The application's image has an older glibc than the view needs, is for another architecture, or has no bash. The pods would not start.";
    NOT_AN_IMAGE = "FG845", "image that cannot be read", "What was named is no image in a registry, no OCI layout, no archive of one, and no tree.";
}
