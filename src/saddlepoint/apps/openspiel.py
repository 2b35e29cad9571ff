"""The sequence form of a game of OpenSpiel, by a walk through its states; OpenSpiel is imported when it is needed."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.errors import ProblemError, first_line
from saddlepoint.problems.files.game_tree import ROOT, SequenceForm, TreeWalk, after, check_probabilities


def read_openspiel(game: Any, max_nodes: int) -> SequenceForm:
    """The sequence form of ``game``, a ``pyspiel.Game`` or a name for ``pyspiel.load_game``."""
    try:
        import pyspiel
    except ImportError:
        raise ProblemError("from_openspiel needs OpenSpiel; pip install 'saddlepoint[games]'") from None
    if isinstance(game, str):
        if game.partition("(")[0] not in pyspiel.registered_names():
            raise ProblemError(f"OpenSpiel has no game {game!r}; expected a name from pyspiel.registered_names()")
        try:
            game = pyspiel.load_game(game)
        except RuntimeError as error:
            raise ProblemError(f"OpenSpiel cannot load {game!r}: {first_line(error)}") from None
    if not isinstance(game, pyspiel.Game):
        raise ProblemError(f"the game is a {type(game).__name__}; expected a pyspiel.Game or the name of one")
    _check_kind(game, pyspiel.GameType)
    return _walk(game, max_nodes)


def _check_kind(game: Any, kinds: Any) -> None:
    kind = game.get_type()
    if game.num_players() != 2:
        raise ProblemError(f"{game} has {game.num_players()} players; expected two")
    if kind.dynamics != kinds.Dynamics.SEQUENTIAL:
        raise ProblemError(
            f"in {game} players move at the same time; expected a game in turns (use pyspiel.convert_to_turn_based)"
        )
    if kind.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        raise ProblemError(f"{game} samples its chance events; expected explicit probabilities")
    if not kind.provides_information_state_string:
        raise ProblemError(f"{game} does not provide its information states; expected a game that names them")


def _walk(game: Any, max_nodes: int) -> SequenceForm:
    """Visit all states depth first, with an explicit stack: a game may be deeper than Python's recursion limit."""
    walk = TreeWalk()
    labels: dict[tuple[int, str], tuple[list[int], list[str]]] = {}
    stack = [(game.new_initial_state(), ROOT, 1.0)]
    nodes = 0
    while stack:
        state, history, probability = stack.pop()
        nodes += 1
        if nodes > max_nodes:
            raise ProblemError(f"{game} has more than {max_nodes} nodes; raise max_nodes if that is intended")
        try:
            if state.is_terminal():
                payoffs = state.returns()
                walk.leaf(history, probability, (float(payoffs[0]), float(payoffs[1])))
                continue
            if state.is_chance_node():
                outcomes = state.chance_outcomes()
                check_probabilities(p for _, p in outcomes)
                children = [(state.child(action), history, probability * p) for action, p in outcomes]
            else:
                player, name, legal = state.current_player(), state.information_state_string(), state.legal_actions()
                known, names = labels.get((player, name), (None, []))
                if known != legal:
                    names = _names(state, legal)
                    labels[player, name] = legal, names
                start = walk.decision(player, name, name, names, history)
                children = [
                    (state.child(action), after(history, player, start + i), probability)
                    for i, action in enumerate(legal)
                ]
        except ProblemError as error:
            raise ProblemError(f"{game}, state '{state.history_str()}': {error}") from None
        stack.extend(reversed(children))
    return walk.form(str(game))


def _names(state: Any, legal: list[int]) -> list[str]:
    """OpenSpiel's names of the actions, with their numbers if two actions have the same name."""
    words = [state.action_to_string(action) for action in legal]
    if len(set(words)) < len(words):
        return [f"{word} ({action})" for word, action in zip(words, legal, strict=True)]
    return words
