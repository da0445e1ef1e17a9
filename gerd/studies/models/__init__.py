"""Small networks for studies: event frames in, the place of a shape in pixels out, at every step.

    frames (batch, steps, 2, height, width)  →  (x, y) (batch, steps, 2)

Five convolutions give a heat map; (x, y) is its expectation. The same weights run in several channels, and the
channels' heat maps are fused into one. There are two designs:

`ScaleChannels` is the paper's: a leaky integrator behind each convolution but the last, a time constant for each
channel, and heat maps that are added up with weights that are learnt. With a single channel it is the baseline.

`TraceChannels` keeps time out of the convolutions. A channel sees the *input* in its own way and once: as a trace with
its own time constant (`TimeChannels`), along its own velocity (`VelocityChannels`), or through its own scaling and
rotation (`PoseChannels`); the convolutions see one step of that.

A leaky integrator has the time constant μ in steps and α = exp(-1 / μ):

    unit gain   v ← α·v + (1 - α)·x      the mean of the past: keeps the amplitude of what changes slowly
    trace       v ← α·v + x              the sum of the past: counts events

A train of events that is run s times as fast is s·f(s·t), more events per step and fewer steps. Its trace at μ / s is
that of f at μ; its mean is not. So what sees events takes the trace, and later layers the mean. Then a channel with
μ / s sees, at time scale s, what the channel with μ sees at 1, up to the grid of steps.
"""

from gerd.studies.models.channels import ChannelOptions as ChannelOptions
from gerd.studies.models.channels import Channels as Channels
from gerd.studies.models.channels import Fusion as Fusion
from gerd.studies.models.channels import Layers as Layers
from gerd.studies.models.channels import Reading as Reading
from gerd.studies.models.channels import fused as fused
from gerd.studies.models.channels import gaussian_derivatives as gaussian_derivatives
from gerd.studies.models.channels import place_of as place_of
from gerd.studies.models.integrators import TIME_BANK as TIME_BANK
from gerd.studies.models.integrators import TIME_CONSTANTS as TIME_CONSTANTS
from gerd.studies.models.integrators import integrate as integrate
from gerd.studies.models.integrators import integration_matrices as integration_matrices
from gerd.studies.models.scale import ScaleChannels as ScaleChannels
from gerd.studies.models.traces import PoseChannels as PoseChannels
from gerd.studies.models.traces import TimeChannels as TimeChannels
from gerd.studies.models.traces import TraceChannels as TraceChannels
from gerd.studies.models.traces import VelocityChannels as VelocityChannels
from gerd.studies.models.traces import moving_trace as moving_trace
