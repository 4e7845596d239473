"""Processes that write to the same place: those that are alive, and the files that dead ones left.

A writer holds a lock on a file of its own until it ends, however it ends. What it writes has its id in the name until
it is published. So a sweep removes what dead writers left, and nothing that a living one may still publish.
"""

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_SUFFIX = ".lock"
OWNER_FILE = "owner.lock"
NEW_SECONDS = 3_600
"""What is still new after that has lost its maker, who takes a moment to lock it and rename it."""
MAX_ATTEMPTS = 100
"""How often a folder is replaced at most while other processes replace it too."""


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created if need be; waits for it."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file. Without the file there is none."""
    with suppress(FileNotFoundError), path.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


@contextmanager
def register_writer(folder: Path) -> Iterator[str]:
    """The id of a new writer, which is alive for as long as the block lasts; `folder` has a file for each writer."""
    folder.mkdir(parents=True, exist_ok=True)
    id = uuid.uuid4().hex
    new, lock = folder / f"{id}.new", folder / f"{id}{LOCK_SUFFIX}"
    with hold_lock(new):
        new.rename(lock)  # nobody sees the file before it is locked
        try:
            yield id
        finally:
            lock.unlink(missing_ok=True)


def living_writers(folder: Path) -> set[str]:
    """The ids of the writers that are alive. The files of others are removed."""
    alive: set[str] = set()
    for new in folder.glob("*.new"):
        if has_lost_maker(new):
            new.unlink(missing_ok=True)
    for lock in folder.glob(f"*{LOCK_SUFFIX}"):
        if is_locked(lock):
            alive.add(lock.name.removesuffix(LOCK_SUFFIX))
        else:
            lock.unlink(missing_ok=True)
    return alive


def writer_of(path: Path) -> str:
    """The id of the writer of a file, which the name begins with."""
    return path.name.partition("-")[0]


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which takes the place of `folder` at the end of the block.

    It is of this block alone: of two processes that replace a folder at the same time the later one wins. Nothing is
    replaced if the block raises. Removes the temporary folders of processes that were killed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder)
    id = uuid.uuid4().hex
    new, partial = temporary_folder(folder, "new", id), temporary_folder(folder, "partial", id)
    new.mkdir()
    with hold_lock(new / OWNER_FILE):
        new.rename(partial)  # nobody sees the folder before its owner is known
        try:
            yield partial
            publish_folder(partial, folder, temporary_folder(folder, "old", id))
            (folder / OWNER_FILE).unlink(missing_ok=True)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def temporary_folder(folder: Path, role: str, id: str) -> Path:
    """The folder beside `folder` in which the process `id` prepares its replacement, or puts away what it replaces."""
    return folder.with_name(f"{folder.name}.{role}-{id}")


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left beside `folder`."""
    for left in folder.parent.iterdir():
        is_temporary = left.name.startswith((f"{folder.name}.partial-", f"{folder.name}.old-"))
        is_left = is_temporary and left.is_dir() and not is_locked(left / OWNER_FILE)
        if is_left or (left.name.startswith(f"{folder.name}.new-") and has_lost_maker(left)):
            shutil.rmtree(left, ignore_errors=True)


def has_lost_maker(new: Path) -> bool:
    """Whether the process was killed that made a file or folder and had not locked and renamed it yet."""
    with suppress(FileNotFoundError):
        return time.time() - new.stat().st_mtime > NEW_SECONDS
    return False


def publish_folder(partial: Path, folder: Path, old: Path) -> None:
    """Put `partial` in the place of `folder`. Raises `OSError` if other processes keep getting in the way."""
    for attempt in range(MAX_ATTEMPTS):
        with suppress(FileNotFoundError):
            os.rename(folder, old)
        try:
            os.rename(partial, folder)
            break
        except OSError:
            if attempt == MAX_ATTEMPTS - 1 or not folder.exists():
                raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
