"""Files are written completely or not at all."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

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


def test_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "a"
    path.touch(mode=0o600)
    with open_atomically(path):
        (part,) = (each for each in tmp_path.iterdir() if each != path)
        assert stat.S_IMODE(part.stat().st_mode) == 0o600


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


class TestFilesThatAppearMeanwhile:
    """Without ``overwrite`` they are kept, and so is the result."""

    def write(self, path):
        with open_atomically(path, overwrite=False) as file:
            file.write(b"result")
            path.write_bytes(b"precious")

    def refuse(self, path):
        with pytest.raises(FileExistsError, match="a was created meanwhile, and is not") as caught:
            self.write(path)
        (kept,) = (each for each in path.parent.iterdir() if each != path)
        assert path.read_bytes() == b"precious"
        assert kept.read_bytes() == b"result"
        assert f"the result is in {kept}; rename that" in str(caught.value)

    def test_a_file(self, tmp_path):
        self.refuse(tmp_path / "a")

    def test_without_hard_links(self, tmp_path, monkeypatch):
        def unsupported(*_):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", unsupported)
        self.refuse(tmp_path / "a")
        new = write_atomically(tmp_path / "b", b"new", overwrite=False)
        assert new.read_bytes() == b"new"
        assert len(os.listdir(tmp_path)) == 3

    def test_an_interrupted_move_without_hard_links(self, tmp_path, monkeypatch):
        def unsupported(*_):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "link", unsupported)
        monkeypatch.setattr("pathlib.Path.replace", stop)
        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / "a", b"new", overwrite=False)
        assert os.listdir(tmp_path) == []

    def test_a_link_to_nowhere(self, tmp_path):
        path = tmp_path / "a"
        with (
            pytest.raises(FileExistsError, match="created meanwhile"),
            open_atomically(path, overwrite=False),
        ):
            path.symlink_to("nowhere")
        assert os.readlink(path) == "nowhere"

    def test_a_folder_in_place_of_the_file(self, tmp_path):
        path = tmp_path / "a"
        with pytest.raises(FileExistsError, match="the result is in "), open_atomically(path):
            path.mkdir()
        assert path.is_dir()

    def test_the_first_of_two_writers_wins(self, tmp_path):
        """Among many that start together, exactly one name is taken and no result is lost."""
        path, n_writers = tmp_path / "a", 8
        together = threading.Barrier(n_writers)
        failed = []

        def write(number):
            try:
                with open_atomically(path, overwrite=False) as file:
                    file.write(b"%d" % number)
                    together.wait()
            except FileExistsError:
                failed.append(number)

        writers = [threading.Thread(target=write, args=(k,)) for k in range(n_writers)]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        assert len(failed) == n_writers - 1
        written = {int(each.read_bytes()) for each in tmp_path.iterdir()}
        assert written == set(range(n_writers))
        assert int(path.read_bytes()) not in failed

    def test_a_new_file_leaves_nothing_beside_it(self, tmp_path):
        write_atomically(tmp_path / "a", b"1", overwrite=False)
        assert os.listdir(tmp_path) == ["a"]
        with pytest.raises(FileExistsError, match="a is there already: pass overwrite=True"):
            write_atomically(tmp_path / "a", b"2", overwrite=False)


class TestFolders:
    def write(self, path, meanwhile, **options):
        with open_folder(path, ending=".txt", **options) as folder:
            (folder / "new.txt").write_text("result")
            meanwhile()

    def kept(self, path):
        (kept,) = (each for each in path.parent.iterdir() if each != path)
        return kept

    @pytest.mark.parametrize("there", [True, False])
    def test_files_that_appear_meanwhile_are_kept(self, tmp_path, there):
        path = tmp_path / "out"
        if there:
            path.mkdir()

        def other_run():
            path.mkdir(exist_ok=True)
            (path / "other.txt").write_text("precious")

        with pytest.raises(FileExistsError, match=r"out has files in it by now.*the result is in "):
            self.write(path, other_run)
        assert os.listdir(path) == ["other.txt"]
        assert (self.kept(path) / "new.txt").read_text() == "result"

    def test_other_files_are_never_deleted(self, tmp_path):
        path = tmp_path / "out"
        self.write(path, lambda: None)
        problem = r"out has other files than \.txt, such as notes\.md by now, and is not replaced"
        with pytest.raises(FileExistsError, match=problem) as caught:
            self.write(path, (path / "notes.md").touch, overwrite=True)
        assert sorted(os.listdir(path)) == ["new.txt", "notes.md"]
        assert str(self.kept(path)) in str(caught.value)

    def test_files_that_appear_at_the_last_moment(self, tmp_path, monkeypatch):
        """Between the check and the move: the folder is put back."""
        path, rename = tmp_path / "out", Path.rename
        self.write(path, lambda: None)

        def late(self, target):
            if self == path:
                (path / "notes.md").touch()
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", late)
        with pytest.raises(FileExistsError, match=r"such as notes\.md by now"):
            self.write(path, lambda: None, overwrite=True)
        assert sorted(os.listdir(path)) == ["new.txt", "notes.md"]

    def test_a_file_in_place_of_the_folder(self, tmp_path):
        path = tmp_path / "out"
        with pytest.raises(FileExistsError, match=r"out was not replaced: .*the result is in "):
            self.write(path, path.touch)
        assert path.is_file()

    @pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(errno.EIO, "no")])
    def test_the_old_one_is_put_back(self, tmp_path, monkeypatch, stop):
        path, rename = tmp_path / "out", Path.rename
        self.write(path, lambda: None)
        (path / "old.txt").touch()

        def fail(self, target):
            if target == path and self.suffix == ".part":
                raise stop
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", fail)
        with pytest.raises((KeyboardInterrupt, OSError)):
            self.write(path, lambda: None, overwrite=True)
        assert sorted(os.listdir(path)) == ["new.txt", "old.txt"]

    def test_permissions_are_those_of_the_old_one_from_the_start(self, tmp_path):
        path, seen = tmp_path / "out", []
        path.mkdir(mode=0o750)
        with open_folder(path) as folder:
            seen.append(folder.stat().st_mode)
        assert [*map(stat.S_IMODE, seen), stat.S_IMODE(path.stat().st_mode)] == [0o750, 0o750]


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
