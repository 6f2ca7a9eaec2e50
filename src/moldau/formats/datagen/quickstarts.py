"""The data sets that have names: `quickstart=orders` and so on, as Avro schemas with hints. Start at `QUICKSTARTS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["QUICKSTARTS", "Quickstart"]

FIRST_TIME_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Quickstart:
    """A data set and the field that is its key."""

    schema: Mapping[str, Any]
    key: str


def _field(name: str, kind: str, **hints: Any) -> dict[str, Any]:
    return {"name": name, "type": {"type": kind, "arg.properties": hints}}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "ksql", "fields": list(fields)}


def _time(name: str, step_ms: int) -> dict[str, Any]:
    return _field(name, "long", iteration={"start": FIRST_TIME_MS, "step": step_ms})


_ADDRESS = _record(
    "address",
    _field("city", "string", regex="City_[1-9][0-9]?"),
    _field("state", "string", regex="State_[1-9][0-9]?"),
    _field("zipcode", "long", range={"min": 10_000, "max": 99_999}),
)
_USER_FIELDS = (
    _time("registertime", 1000),
    _field("userid", "string", regex="User_[1-9]"),
    _field("regionid", "string", regex="Region_[1-9]"),
    _field("gender", "string", options=["FEMALE", "MALE", "OTHER"]),
)
_MESSAGES = [
    "a pleasant flight",
    "the seat was too narrow",
    "thank you for the help at the gate",
    "we waited two hours without a word",
    "more coffee, please",
    "the crew was wonderful",
]
_AGENTS = ["Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (Macintosh)", "curl/8.5"]
_PAGES = ["/index.html", "/site/login.html", "/site/user_status.html", "/images/track.png"]
_CODES = [200, 302, 404, 405, 406, 407]

QUICKSTARTS: dict[str, Quickstart] = {
    "orders": Quickstart(
        _record(
            "orders",
            _time("ordertime", 250),
            _field("orderid", "int", iteration={"start": 0}),
            _field("itemid", "string", regex="Item_[1-9][0-9]{0,2}"),
            _field("orderunits", "double", range={"min": 0.1, "max": 10.0}),
            {"name": "address", "type": _ADDRESS},
        ),
        "orderid",
    ),
    "users": Quickstart(_record("users", *_USER_FIELDS), "userid"),
    "users_": Quickstart(
        _record(
            "users_extended",
            *_USER_FIELDS,
            {
                "name": "interests",
                "type": {
                    "type": "array",
                    "items": {"type": "string", "arg.properties": {"options": ["News", "Travel", "Movies", "Sport"]}},
                    "arg.properties": {"length": 2},
                },
            },
            {
                "name": "contactinfo",
                "type": {
                    "type": "map",
                    "values": {"type": "string", "arg.properties": {"regex": "[1-9]\\d{9}"}},
                    "arg.properties": {"length": 2},
                },
            },
        ),
        "userid",
    ),
    "pageviews": Quickstart(
        _record(
            "pageviews",
            _time("viewtime", 10),
            _field("userid", "string", regex="User_[1-9]"),
            _field("pageid", "string", regex="Page_[1-9][0-9]"),
        ),
        "viewtime",
    ),
    "ratings": Quickstart(
        _record(
            "ratings",
            _field("rating_id", "long", iteration={"start": 1}),
            _field("user_id", "int", range={"min": 1, "max": 20}),
            _field("stars", "int", range={"min": 1, "max": 6}),
            _field("route_id", "int", range={"min": 1, "max": 10_000}),
            _time("rating_time", 100),
            _field("channel", "string", options=["web", "ios", "iOS-test", "android"]),
            _field("message", "string", options=_MESSAGES),
        ),
        "rating_id",
    ),
    "clickstream": Quickstart(
        _record(
            "clickstream",
            _field("ip", "string", regex="111\\.[1-9]\\d\\.\\d{2}\\.\\d{2}"),
            _field("userid", "int", range={"min": 1, "max": 40}),
            _field("remote_user", "string", options=["-"]),
            _field("time", "string", iteration={"start": 1, "step": 10}),
            _field("_time", "long", iteration={"start": 1, "step": 10}),
            _field("request", "string", options=[f"GET {page} HTTP/1.1" for page in _PAGES]),
            _field("status", "string", options=[str(code) for code in _CODES]),
            _field("bytes", "string", options=["278", "1289", "2048", "4096", "14096"]),
            _field("referrer", "string", options=["-"]),
            _field("agent", "string", options=_AGENTS),
        ),
        "ip",
    ),
    "clickstream_codes": Quickstart(
        _record(
            "clickstream_codes",
            _field("code", "int", options=_CODES),
            _field("definition", "string", options=["Successful", "Redirect", "Page not found", "Not allowed"]),
        ),
        "code",
    ),
    "clickstream_users": Quickstart(
        _record(
            "clickstream_users",
            _field("user_id", "int", iteration={"start": 1, "restart": 40}),
            _time("registered_at", 1000),
            _field("username", "string", regex="user_[1-9]\\d{0,2}"),
            _field("first_name", "string", options=["Anna", "Bohumil", "Clara", "David", "Emma"]),
            _field("last_name", "string", options=["Novak", "Dvorak", "Svoboda", "Cerny"]),
            _field("city", "string", options=["Praha", "Brno", "Plzen", "Linz"]),
            _field("level", "string", options=["Gold", "Silver", "Platinum"]),
        ),
        "user_id",
    ),
    "stock_trades": Quickstart(
        _record(
            "stock_trades",
            _field("side", "string", options=["BUY", "SELL"]),
            _field("quantity", "int", range={"min": 1, "max": 5000}),
            _field("symbol", "string", options=["ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"]),
            _field("price", "int", range={"min": 5, "max": 1000}),
            _field("account", "string", regex="[A-Z]{3}\\d{3}"),
            _field("userid", "string", regex="User_[1-9]"),
        ),
        "symbol",
    ),
    "inventory": Quickstart(
        _record(
            "inventory",
            _field("id", "long", iteration={"start": 0}),
            _field("quantity", "int", range={"min": 1, "max": 100}),
            _field("productid", "int", range={"min": 1, "max": 100}),
        ),
        "id",
    ),
    "taxis": Quickstart(
        _record(
            "taxis",
            _field("ride_id", "long", iteration={"start": 1}),
            _field("taxi_id", "int", range={"min": 1, "max": 200}),
            _time("pickup_time", 500),
            _field("pickup_zone", "int", range={"min": 1, "max": 266}),
            _field("dropoff_zone", "int", range={"min": 1, "max": 266}),
            _field("passengers", "int", range={"min": 1, "max": 7}),
            _field("distance_km", "double", range={"min": 0.3, "max": 40.0}),
            _field("fare", "double", range={"min": 3.0, "max": 120.0}),
        ),
        "taxi_id",
    ),
    "sensors": Quickstart(
        _record(
            "sensors",
            _field("sensor_id", "string", regex="Sensor_[1-9][0-9]?"),
            _time("reading_time", 100),
            _field("temperature", "double", range={"min": -20.0, "max": 45.0}),
            _field("humidity", "double", range={"min": 0.0, "max": 100.0}),
            _field("battery", "int", range={"min": 0, "max": 101}),
        ),
        "sensor_id",
    ),
}
