"""SCRAM credentials of users, over librdkafka's admin client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.client.admin import Admin

__all__ = ["MECHANISMS", "alter_credentials", "describe_credentials"]

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def describe_credentials(admin: Admin, users: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """Mechanism and iterations by user; all users when none are named."""
    futures = admin.client.describe_user_scram_credentials(list(users) or None, request_timeout=admin.timeout_s)
    found = admin.wait_for_all(futures) if isinstance(futures, dict) else admin.wait_for(futures)
    return {
        user: [(info.mechanism.name.replace("_", "-"), info.iterations) for info in description.scram_credential_infos]
        for user, description in found.items()
    }


def alter_credentials(
    admin: Admin, user: str, passwords: Mapping[str, tuple[str, int]], dropped: Sequence[str]
) -> None:
    """Set a password with its iterations per mechanism, and remove mechanisms."""
    from confluent_kafka.admin import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialAlteration,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(
            user, ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], iterations), password.encode()
        )
        for mechanism, (password, iterations) in passwords.items()
    ]
    changes += [UserScramCredentialDeletion(user, ScramMechanism[name.replace("-", "_")]) for name in dropped]
    admin.wait_for_all(admin.client.alter_user_scram_credentials(changes, request_timeout=admin.timeout_s))
