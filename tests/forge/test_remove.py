from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from forge import small_home

from envforge.forge.remove import delete, remove
from envforge.model.errors import EnvforgeError, LeftoverError
from envforge.store import locking


def test_link_generations_and_records_are_gone(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    small_home.environment(shop, "other")
    data = remove(shop, "small").data
    assert (data.environment, data.generations) == ("small", (1,))
    assert data.bytes > 0
    assert shop.home.environments() == ("other",)
    for folder in (shop.home.envs, shop.home.generations_root, shop.home.records_root):
        assert [entry.name for entry in folder.iterdir()] == ["other"]


def test_what_a_build_left_can_be_removed(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop, switch=False)
    remove(shop, "small")
    assert shop.home.environments() == ()


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnvforgeError) as caught:
        remove(small_home.shop(tmp_path), "small")
    assert (caught.value.code, caught.value.exit) == ("no-such-environment", 2)


def test_an_environment_in_use_is_kept_unless_that_is_known(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    python = shop.home.prefix("small", 1) / "bin" / "python"
    child = subprocess.Popen(
        [str(python), "-c", "print('up', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=shop.home.prefix("small", 1),
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(EnvforgeError) as caught:
            remove(shop, "small")
        assert caught.value.code == "in-use"
        assert f"process {child.pid}" in (caught.value.cause or "")
        assert shop.home.current("small") == 1
        remove(shop, "small", in_use=True)
        assert shop.home.environments() == ()
    finally:
        child.communicate(b"\n", timeout=30)


def test_somebody_else_is_changing_it(tmp_path: Path) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    with locking.hold(shop.home, "small", "create small"), pytest.raises(EnvforgeError) as caught:
        remove(shop, "small")
    assert caught.value.code == "locked"
    assert shop.home.current("small") == 1


def test_read_only_folders_are_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x", encoding="utf-8")
    deep.chmod(0o500)
    (tmp_path / "a").chmod(0o500)
    assert delete(tmp_path / "a") == []
    assert not (tmp_path / "a").exists()


def test_a_symlink_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to("target")
    assert delete(tmp_path / "link") == []
    assert (tmp_path / "target" / "file").exists()


def test_what_cannot_be_removed_is_exit_4_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = small_home.shop(tmp_path)
    small_home.environment(shop)
    monkeypatch.setattr("envforge.forge.remove.delete", lambda folder: [f"{folder}/file: permission denied"])
    with pytest.raises(LeftoverError) as caught:
        remove(shop, "small")
    assert caught.value.exit == 4
    assert "generations/small/file" in (caught.value.cause or "")
    monkeypatch.undo()
    remove(shop, "small")
    assert shop.home.environments() == ()
