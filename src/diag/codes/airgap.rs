//! `FG9xx`: lock, archive, load and publish.

super::codes! {
    LOCK_STALE = "FG901", "image is not in the lock", "There is an `images.lock`, so every image of the specs, of the documents beside them and of the views must be in it: a bundle with some images pinned and others not would look safe and not be. The image was added or renamed since the lock was written. `flux-gen lock` asks the registry for what is missing and leaves the rest as it is.";
    NOT_PINNED = "FG902", "image is not pinned", "`--locked` asks for bundles whose images are all named by digest, and this image is named by a tag, which may mean other bytes tomorrow. Write the digest into the spec, or run `flux-gen lock`, which finds it out and keeps it in `images.lock`.";
    LOCK_UNREADABLE = "FG903", "lock cannot be read", "`images.lock` is not what `flux-gen lock` writes: it was edited by hand, two versions of it were merged, or a later flux-gen wrote it. `flux-gen lock --update` writes it anew.";
    LOCK_NO_ANSWER = "FG904", "image cannot be locked", "The registry or file that should have the image did not give it: the message says why. Nothing was written. Other images may have been found; they are asked for again next time.";
    LOCK_MOVED = "FG905", "tag means another image now", "The lock was written when the tag meant other bytes. `flux-gen lock --update` takes the new ones, as it says here with both digests; without `--update` known images are not asked for again.";
}
