"""What would make the ranking another's, in silence: another model, a prompt that is cut."""

import pytest

from botchat.cli.main import main
from botchat.models.watch import is_same_model
from tests.integration.test_endpoints import KEY, ask
from tests.integration.test_runs import workspace
from tests.openai_server import Answer, Server, converse, text
from tests.rows import cases, rows


@pytest.mark.parametrize(("asked_for", "answers"), rows("names_of_two_models"))
def test_another_model_is_another(asked_for, answers):
    """By size, by version, by a word of its name."""
    assert not is_same_model(asked_for, answers)


@pytest.mark.parametrize(("asked_for", "answers"), rows("names_of_one_model"))
def test_capitals_path_and_date_make_no_other_model(asked_for, answers):
    """As providers name their snapshots."""
    assert is_same_model(asked_for, answers)


def as_model(name):
    """Everyday talk of a model with this name."""
    return lambda call: Answer(200, converse(call).body | {"model": name})


def test_another_model_that_answers_is_said_once_a_stage(tmp_path, caplog):
    """In a whole run: both names, and that one was asked for."""
    with Server(as_model("tiny-1b")) as server:
        folder = workspace(tmp_path / "w", server, 3)
        run = ["run", "--seeds", "small", "--model", "alpha", "--judge", "umpire"]
        assert main([*run, "--protocol", "unieval", "--dir", str(folder)]) == 0
    assert caplog.text.count("alpha: asked for alpha, and tiny-1b answers") == 1
    assert caplog.text.count("umpire: asked for umpire, and tiny-1b answers") == 1


@pytest.mark.parametrize("name", ["", None, 5, ["m"], "m", "M-2024-05-13"])
def test_a_model_that_is_not_named_or_is_the_same_is_not_said(tmp_path, caplog, name):
    """A field that is no name says nothing."""
    with Server(Answer(200, text("fine").body | {"model": name})) as server:
        assert ask(server, tmp_path).reply.text == "fine"
    assert "answers" not in caplog.text


@pytest.mark.parametrize("name", [f"m-{KEY}", "m\x1b[2J\x07", "a\nbotchat: all is well"])
def test_the_name_that_a_server_gives_holds_no_secret_and_steers_nothing(tmp_path, caplog, name):
    """It is the server's text as any other."""
    with Server(Answer(200, text("fine").body | {"model": name})) as server:
        reply = ask(server, tmp_path).reply
    assert KEY not in caplog.text + reply.model
    assert all(record.getMessage().isprintable() for record in caplog.records)


def talks(*lengths):
    """Prompts of so many bytes each."""
    return [[{"role": "user", "content": f"{n} " + "word " * (n // 5)}] for n in lengths]


def counted(*counts):
    """Replies with these counts of prompt tokens, the last for all later ones."""

    def script(call):
        count = counts[min(call.n, len(counts)) - 1]
        return text("fine", usage={"prompt_tokens": count, "completion_tokens": 2})

    return script


@pytest.mark.parametrize(("counts", "lengths"), cases("prompts_that_are_cut", 2))
def test_a_prompt_that_is_cut_in_silence_is_said_once(tmp_path, caplog, counts, lengths):
    """With the count, and what to set; however many calls follow."""
    with Server(counted(*counts)) as server:
        ask(server, tmp_path, *talks(*lengths))
    (message,) = [record.getMessage() for record in caplog.records]
    assert f"prompt_tokens = {counts[-1]}" in message
    assert "it seems to cut them" in message
    assert "context_window" in message


@pytest.mark.parametrize(("counts", "lengths"), cases("counts_that_may_be_right", 2))
def test_a_count_that_may_be_right_is_not_said(tmp_path, caplog, counts, lengths):
    """No word where nothing is cut."""
    with Server(counted(*counts)) as server:
        ask(server, tmp_path, *talks(*lengths))
    assert caplog.records == []
