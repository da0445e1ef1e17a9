"""Events as a notebook shows them: a recording or other events in, HTML with a moving picture and the facts out."""

from __future__ import annotations

from base64 import b64encode

from gerd.events.keys import polarities
from gerd.pictures.video import MOST_ZOOM, Layout, gif
from gerd.recording.events import Events
from gerd.recording.facts import table
from gerd.recording.recording import Recording

SIDE = 320  # screen pixels of the frame's longer side, at most
MOST_STEPS = 60  # of a longer recording, every n-th step is shown


def html(recording: Events) -> str:
    """The HTML: nothing in it is fetched from elsewhere."""
    side = max(recording.width, recording.height)
    layout = Layout(recording, max(1, min(MOST_ZOOM, SIDE // side)), block=-(-side // SIDE))
    steps = range(0, recording.steps, -(-recording.steps // MOST_STEPS) or 1)
    data = b64encode(b"".join(gif(layout.size, layout.pictures(steps), 20.0))).decode()
    on = int(polarities(recording.keys).sum())
    facts: dict[str, object] = {
        "events of" if not isinstance(recording, Recording) else "recording": recording.name,
        "sensor": f"{recording.width}×{recording.height} px",
        "steps": f"{recording.steps} of {recording.step_us} µs",
        "events": f"{len(recording)}: {on} ON, {len(recording) - on} OFF",
    }
    if isinstance(recording, Recording):
        facts["events"] = f"{facts['events']}; {int(recording.background.sum())} of them background noise"
        facts["actors"] = recording.actors
        facts["seed"] = recording.identity.seed
        facts["config"] = recording.identity.config_digest[:16]
    facts["digest"] = recording.digest[:16]
    picture = f'<img alt="events" src="data:image/gif;base64,{data}" style="image-rendering:pixelated">'
    return f'<div style="display:flex;gap:1em;align-items:flex-start">{picture}{table(facts)}</div>'
