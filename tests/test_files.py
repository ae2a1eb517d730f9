"""Files are written completely or not at all."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from lanam.files import open_atomically, open_folder, require_place, write_atomically


def test_bytes_and_text(tmp_path):
    path = write_atomically(tmp_path / "a", b"\x00\n\r\n\xff")
    assert path.read_bytes() == b"\x00\n\r\n\xff"
    assert write_atomically(str(path), "ä\n\r\n") == path
    assert path.read_bytes() == "ä\n\r\n".encode()
    assert os.listdir(tmp_path) == ["a"]


def test_a_name_as_long_as_names_may_be(tmp_path):
    assert write_atomically(tmp_path / ("a" * 255), b"x").read_bytes() == b"x"


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path):
    (tmp_path / "any").touch()
    path = write_atomically(tmp_path / "a", b"1")
    assert path.stat().st_mode == (tmp_path / "any").stat().st_mode
    path.chmod(0o640)
    write_atomically(path, b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("real")
    assert write_atomically(link, b"new") == link
    assert link.is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_device_is_written_to_and_not_replaced():
    before = os.stat("/dev/null")
    write_atomically("/dev/null", b"x")
    assert os.path.samestat(before, os.stat("/dev/null"))


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_keeps_the_existing_file(tmp_path, monkeypatch, step):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match=r"the file was not written: No space left") as caught:
        write_atomically(path, b"new" * 10_000)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_limit_of_the_system(tmp_path):
    """A real short write, in a process that may not write files beyond a size."""
    pytest.importorskip("resource")
    path = tmp_path / "a"
    path.write_bytes(b"old")
    code = f"""
import errno, resource, signal
from lanam.files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically({str(path)!r}, b"x" * 100_000)
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "EFBIG\n"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_error_between_parts_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def write():
        with open_atomically(path) as file:
            file.write(b"new" * 100_000)
            raise ValueError("a bad row")

    with pytest.raises(ValueError, match="a bad row"):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_synced_before_it_is_moved(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    seen = []
    real = os.fsync

    def fsync(handle):
        seen.append((path.read_bytes(), os.fstat(handle).st_size))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(path, b"new!")
    assert seen == [(b"old", 4)]


def test_readers_see_one_file_or_the_other(tmp_path):
    path = tmp_path / "a"
    contents = {bytes([value]) * 200_000 for value in range(4)}
    write_atomically(path, min(contents))
    seen, done = set(), threading.Event()

    def look():
        while not done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(10):
        for content in contents:
            write_atomically(path, content)
    done.set()
    reader.join()
    assert seen <= contents


def test_a_folder_is_removed_while_a_task_writes_into_it(tmp_path, monkeypatch):
    folders, remove, late = [], os.rmdir, iter(["a", "b"])

    def rmdir(*args, **kwargs):
        if name := next(late, None):  # a writer gets there between the listing and the removal
            (folders[0] / name).write_text("late")
        remove(*args, **kwargs)

    monkeypatch.setattr(os, "rmdir", rmdir)

    def write():
        with open_folder(tmp_path / "out") as folder:
            folders.append(folder)
            (folder / "first").write_text("in time")
            raise ValueError("a bad row")

    with pytest.raises(ValueError, match="a bad row"):
        write()
    assert next(late, None) is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_removed_is_an_error(tmp_path, monkeypatch):
    def never(*_, **__):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))

    monkeypatch.setattr("lanam.files._PATIENCE", 0.02)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", never)
        with pytest.raises(OSError, match="not empty"), open_folder(tmp_path / "out"):
            raise ValueError("a bad row")


def test_no_permission(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may do anything")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="the file was not written: Permission denied"):
            write_atomically(tmp_path / "a", b"x")
    finally:
        tmp_path.chmod(0o700)


class TestPlaces:
    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(
            FileNotFoundError, match=r"there is no folder .*nowhere: create it first"
        ):
            require_place(tmp_path / "nowhere" / "a")

    def test_a_folder(self, tmp_path):
        with pytest.raises(IsADirectoryError, match=r"is a folder: pass .* such as r\.html"):
            require_place(tmp_path, example="r.html")

    def test_a_file_that_may_not_be_replaced(self, tmp_path):
        path = tmp_path / "a"
        assert require_place(path, overwrite=False) == path
        path.touch()
        with pytest.raises(FileExistsError, match=r"is there already: pass overwrite=True"):
            require_place(path, overwrite=False)
        assert require_place(path) == path
