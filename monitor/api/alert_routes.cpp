// The list comes from a reader. A change runs as one write, and the same write makes the JSON of
// the answer, so a client sees what was stored. The reply follows the write. Then the feed
// announces the session, because an acknowledged failure needs nobody any more. A delivery is shown
// as `held` also while it is pending and its alert has no message yet.
#include <charconv>
#include <utility>

#include "api/routes.h"
#include "codec/json.h"
#include "store/alert_acts.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

constexpr std::int64_t snooze_minutes_max = 43'200;  // 30 days

std::int64_t ms_of(WallTime time) {
  return time.time_since_epoch().count();
}

void text_or_null(JsonWriter& out, std::string_view name, const std::string& text) {
  out.key(name);
  text.empty() ? out.value(nullptr) : out.value(text);
}

/// The delivery's state for clients: an alert without a message is held.
DeliveryState shown_state(const Alert& alert, const Delivery& delivery) {
  const bool waits = !alert.sent_with && delivery.state == DeliveryState::pending;
  return waits ? DeliveryState::held : delivery.state;
}

void write_alert(JsonWriter& out, const Alert& alert) {
  out.open_object().field("alertId", alert.id).field("sessionId", alert.session);
  out.field("health", alert.word)
      .field("kind", name_of(alert.kind))
      .field("reason", whole_reason(alert));
  out.field("at", ms_of(alert.at));
  text_or_null(out, "message", alert.message);
  out.key("channels").open_array();
  for (const auto& delivery : alert.deliveries) {
    out.open_object().field("name", delivery.channel);
    out.field("state", name_of(shown_state(alert, delivery))).field("attempts", delivery.attempts);
    text_or_null(out, "error", delivery.error);
    out.close_object();
  }
  out.close_array().key("acknowledged");
  if (alert.acknowledged_by.empty()) {
    out.value(nullptr);
  } else {
    out.open_object().field("by", alert.acknowledged_by);
    out.field("at", ms_of(alert.acknowledged_at)).close_object();
  }
  out.key("snoozedUntil");
  alert.snoozed_until ? out.value(ms_of(*alert.snoozed_until)) : out.value(nullptr);
  out.close_object();
}

void write_channel(JsonWriter& out, const ChannelStatus& channel, Instant now) {
  out.open_object().field("name", channel.name).field("kind", name_of(channel.type));
  out.field("state", name_of(channel.condition));
  text_or_null(out, "error", channel.error);
  out.key("oldestUnsentMs");
  channel.unsent_since ? out.value(std::max<std::int64_t>((now - *channel.unsent_since).count(), 0))
                       : out.value(nullptr);
  out.close_object();
}

/// The alert of the path. Errors: `not_found`.
Result<std::int64_t> alert_id(const Call& call) {
  std::int64_t id = 0;
  const auto* end = call.id.data() + call.id.size();
  const auto read = std::from_chars(call.id.data(), end, id);
  if (read.ec != std::errc{} || read.ptr != end || id < 1)
    return Error{ErrorCode::not_found, "there is no alert " + call.id, "alertId"};
  return id;
}

using Change = std::function<Result<Alert>(Store&, std::int64_t)>;

void change_alert(const CallPtr& call, Change change) {
  const auto id = alert_id(*call);
  if (!id) return call->reply(error_response(id.error()));
  const auto changed = std::make_shared<JsonWriter>();
  const auto session = std::make_shared<std::string>();
  call->backend.write(
      [id = *id, change = std::move(change), changed, session](Store& store) -> Result<void> {
        const auto alert = change(store, id);
        if (!alert) return alert.error();
        write_alert(*changed, *alert);
        *session = alert->session;
        return {};
      },
      [call, changed, session](const Result<void>& done) {
        // A failed end that somebody knows of needs nobody any more.
        if (done && call->feed != nullptr) call->feed->touched(*session);
        call->reply(done ? json_response(*changed) : error_response(done.error()));
      });
}

}  // namespace

void list_alerts(const CallPtr& call) {
  AlertFilter filter;
  const auto state = call->target.choice<DeliveryState>("state");
  if (!state) return call->reply(error_response(state.error()));
  const auto after = call->target.number("after", 0, 0, INT64_MAX);
  if (!after) return call->reply(error_response(after.error()));
  const auto limit = call->target.number("limit", 100, 1, page_max);
  if (!limit) return call->reply(error_response(limit.error()));
  filter.state = *state;
  filter.session = call->target.text("sessionId");
  filter.after = *after;
  filter.limit = static_cast<int>(*limit);
  reading(call, [call, filter = std::move(filter)](StoreReader& reader) {
    const auto alerts = reader.alerts(filter);
    if (!alerts) return call->reply(error_response(alerts.error()));
    JsonWriter out;
    out.open_object().key("alerts").open_array();
    for (const auto& alert : *alerts) write_alert(out, alert);
    out.close_array().key("channels").open_array();
    const auto now = call->backend.now();
    for (const auto& channel : call->backend.channels()) write_channel(out, channel, now);
    out.close_array().key("next");
    const bool more = static_cast<int>(alerts->size()) == filter.limit;
    more ? out.value(alerts->back().id) : out.value(nullptr);
    out.close_object();
    call->reply(json_response(out));
  });
}

void acknowledge_alert(const CallPtr& call) {
  auto asked = request_in(*call);
  if (!asked) return call->reply(error_response(asked.error()));
  change_alert(call, [by = std::move(asked->by)](Store& store, std::int64_t id) {
    return AlertActs(store).acknowledge(id, by);
  });
}

void snooze_alert(const CallPtr& call) {
  const auto minutes = integer_field_from_json(call->request.body, "minutes");
  if (!minutes) return call->reply(error_response(minutes.error()));
  if (!*minutes) {
    return call->reply(error_response({ErrorCode::malformed, "minutes is missing", "minutes"}));
  }
  if (**minutes < 1 || **minutes > snooze_minutes_max) {
    return call->reply(
        error_response({ErrorCode::invalid,
                        "minutes is " + std::to_string(**minutes) + "; it must be from 1 to " +
                            std::to_string(snooze_minutes_max),
                        "minutes"}));
  }
  change_alert(call, [time = Millis{**minutes * 60'000}](Store& store, std::int64_t id) {
    return AlertActs(store).snooze(id, time);
  });
}

void test_channel(const CallPtr& call) {
  const bool known = call->backend.test_channel(call->id, [call](const ChannelTest& channel_test) {
    JsonWriter out;
    out.open_object().field("channel", call->id).field("sent", channel_test.sent);
    out.field("answer", channel_test.answer).close_object();
    call->reply(json_response(out));
  });
  if (known) return;
  std::vector<std::string> names;
  for (const auto& channel : call->backend.channels()) names.push_back(channel.name);
  call->reply(error_response(
      {ErrorCode::not_found,
       names.empty() ? "this monitor has no channels" : unknown_word("channel", call->id, names),
       "channel"}));
}

}  // namespace watchdog::monitor
