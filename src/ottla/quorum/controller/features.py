"""UpdateFeatures: the cluster agrees on another level of a feature. All updates of a request or none."""

from collections.abc import Mapping
from typing import Any, Final

from ottla.metadata.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    UNSUPPORTED,
    LevelRange,
    find_unmet_need,
    loses_metadata,
)
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.quorum.controller.partitions.eligible_leaders import begin_eligible_leaders, end_eligible_leaders
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ottla.wire.metadata_records.features import FeatureLevelRecord

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3


def refuse_update_features(_ask: UpdateFeaturesRequest, refusal: Refusal) -> UpdateFeaturesResponse:
    """Refuse all updates of a request."""
    return UpdateFeaturesResponse(error_code=refusal.error_code, error_message=refusal.message)


@decides(UpdateFeaturesRequest, refuse=refuse_update_features)
def decide_update_features(
    view: ControllerView, ask: UpdateFeaturesRequest
) -> Decision[UpdateFeaturesResponse]:
    """Set levels of features, if every node supports them."""
    updates = {update.feature: update for update in ask.feature_updates}
    levels = {**view.image.features, METADATA_VERSION: view.metadata_version}
    proposed = {**levels, **{name: update.max_version_level for name, update in updates.items()}}
    records: list[Any] = []
    for name, update in updates.items():
        try:
            records += _update(view, update, levels.get(name, 0), proposed)
            check_record_count(len(records))
        except Refusal as refusal:
            return Decision(refuse_update_features(ask, _of_all(refusal)))
    kraft = updates.get(KRAFT_VERSION)
    kraft_version = None
    if kraft is not None and kraft.max_version_level != view.kraft_version:
        kraft_version = kraft.max_version_level
    results = tuple(UpdatableFeatureResult(feature=name, error_message="NONE") for name in updates)
    reply = UpdateFeaturesResponse(error_message=None, results=results)
    return Decision(reply) if ask.validate_only else Decision(reply, records, kraft_version)


def _of_all(refusal: Refusal) -> Refusal:
    """Say that nothing was changed, because of one feature."""
    if refusal.error_code is not ErrorCode.INVALID_UPDATE_VERSION:
        return refusal
    message = (
        f"The update failed for all features since the following feature had an error: {refusal.message}"
    )
    return Refusal(refusal.error_code, message)


def _update(
    view: ControllerView, update: FeatureUpdateKey, old: int, proposed: Mapping[str, int]
) -> list[Any]:
    name, new = update.feature, update.max_version_level
    # Version 0 of the request says `allow_downgrade` instead, which Kafka does not heed any more.
    kind = update.upgrade_type
    if kind not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        raise _invalid(name, new, "The controller does not support the given upgrade type.")
    if new < 0:
        raise _invalid(name, new, "A feature version cannot be less than 0.")
    _check_supported(view, name, new)
    if name == KRAFT_VERSION:
        old = view.kraft_version
    if new < old and kind == _UPGRADE:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
        raise _invalid(name, new, reason)
    if new > old and kind != _UPGRADE:
        raise _invalid(name, new, "Can't downgrade to a newer version.")
    if name == KRAFT_VERSION:
        if new < old:
            raise _invalid(name, new, "Can't downgrade the version of this feature.")
        if new > old:
            error, message = view.find_upgrade_error(new)
            if error is not ErrorCode.NONE:
                raise Refusal(error, message)
        return []
    if name == METADATA_VERSION:
        _check_metadata_version(old, new, kind)
    else:
        unmet = find_unmet_need(name, new, proposed)
        if unmet is not None:
            raise _invalid(name, new, f"It depends on {unmet[0]} level {unmet[1]}.")
    return [FeatureLevelRecord(name=name, feature_level=new), *_consequences(view, name, old, new)]


def _consequences(view: ControllerView, name: str, old: int, new: int) -> list[Any]:
    """Return what else has to change with a feature."""
    if name != ELR_VERSION or (old == 0) == (new == 0):
        return []
    return begin_eligible_leaders(view) if new else end_eligible_leaders(view)


def _check_supported(view: ControllerView, name: str, level: int) -> None:
    if name not in SUPPORTED and level == 0:
        raise _invalid(name, level, f"Feature {name} not found.")
    if level not in (supported := SUPPORTED.get(name, UNSUPPORTED)):
        raise _unsupported(name, level, f"Local controller {view.settings.node_id}", supported)
    for broker in view.image.brokers.values():
        if level not in (supported := _range_of(broker.features, name)):
            raise _unsupported(name, level, f"Broker {broker.broker_id}", supported)
    for controller in view.image.controllers.values():
        if level not in (supported := _range_of(controller.features, name)):
            raise _unsupported(name, level, f"Controller {controller.controller_id}", supported)


def _unsupported(name: str, level: int, node: str, supported: LevelRange) -> Refusal:
    if supported == UNSUPPORTED:
        return _invalid(name, level, f"{node} does not support this feature.")
    return _invalid(name, level, f"{node} only supports versions {supported.min}-{supported.max}")


def _range_of(features: tuple[Any, ...], name: str) -> LevelRange:
    for feature in features:
        if feature.name == name:
            return LevelRange(feature.min_supported_version, feature.max_supported_version)
    return UNSUPPORTED


def _check_metadata_version(old: int, new: int, kind: int) -> None:
    if new >= old or not loses_metadata(old, new):
        return
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if kind == _UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    raise Refusal(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {old} to {new}. {reason}",
    )


def _invalid(name: str, level: int, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}"
    )
