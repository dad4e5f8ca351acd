"""From frames to a mixture, and to the statistics of segments under it."""

from __future__ import annotations

from pathlib import Path

from spkbase.runs import Depends, Draft, Handle, Run, Stage
from spkver.features import Frames
from spkver.idmap import IdMap
from spkver.mixture import (
    GaussianMixture,
    Statistics,
    TrainedUbm,
    UbmConfig,
    accumulate_statistics,
    open_statistics,
    read_ubm,
    train_ubm,
    write_ubm,
)
from spkver.pipeline.files import RowsFile


def universal_model(
    run: Run, frames: Handle[Frames], recordings: tuple[str, ...], config: UbmConfig
) -> Stage[TrainedUbm]:
    """Train the universal background model (`gmm/ubm.h5`), or take the one of `ubm.file`."""

    def make(draft: Draft) -> None:
        if config.file is not None:
            trained = read_ubm(config.file)
        else:
            trained = train_ubm(frames.value.stack(recordings), config, work=run.work, destination=draft.destination)
        write_ubm(draft.path, trained, attributes=draft.attributes)

    depends = Depends(inputs=[config, recordings], after=[frames], on_device=True)
    if config.file is not None:
        depends = Depends(sources={"ubm.file": Path(config.file)})
    return run.stage("ubm", "gmm/ubm.h5", make=make, read=read_ubm, depends=depends)


def statistics(
    run: Run,
    name: str,
    ubm: Handle[GaussianMixture],
    frames: Handle[Frames],
    idmap: IdMap,
    *,
    file: Path | None = None,
) -> Stage[Statistics]:
    """Accumulate the statistics of the segments of a list (`data/stat_<name>.h5`), or take them from a StatServer's."""

    def make(draft: Draft) -> None:
        mixture = ubm.value
        if file is not None:
            RowsFile(file, idmap).copy_statistics(draft, (mixture.n_components, mixture.means.size))
            return
        accumulate_statistics(
            mixture, frames.value, idmap.models, idmap.segments, work=run.work, destination=draft.destination
        )

    if file is not None:
        depends = Depends(inputs=idmap, after=[ubm], sources={f"statistics of {name}": file})
    else:
        depends = Depends(inputs=idmap, after=[frames, ubm], on_device=True)
    return run.stage(f"statistics of {name}", f"data/stat_{name}.h5", make=make, read=open_statistics, depends=depends)
