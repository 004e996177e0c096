#include "proxy/chronicle.h"

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "proxy/attribution.h"
#include "proxy/conversation.h"
#include "watchdog/answer_stream.h"
#include "watchdog/content.h"
#include "watchdog/digest.h"
#include "watchdog/history.h"
#include "watchdog/json.h"
#include "watchdog/model_request.h"
#include "watchdog/reasons.h"
#include "watchdog/text_loop.h"

namespace watchdog::monitor {
namespace {

using How = ExchangeEnded::How;

/// Open ones. The engine has fewer connections than that.
constexpr std::size_t open_exchanges_max = 16'384;
/// Answers whose sessions are remembered, for each session that may be.
constexpr std::size_t answers_per_session = 4;

Report said(ReportKind kind, std::string name = {}, std::string content = {}) {
  Report report;
  report.kind = kind;
  report.name = std::move(name);
  report.content = std::move(content);
  return report;
}

/// An error that says nothing of the request: the server is not there, or has no room.
constexpr bool is_unavailable(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504 || status == 529;
}

/// What is remembered of a session.
struct SessionMemory {
  SessionSpec spec;
  Conversation conversation;
  std::int64_t requests = 0;
  double tokens = 0;                ///< Of all answers that are over.
  double tokens_told = 0;           ///< Running totals never fall.
  std::vector<std::uint64_t> open;  ///< Exchanges.
  WallTime beat_at{};
  bool is_closing = false;  ///< Its client said that this is the last request.
  bool is_over = false;     ///< And that was answered.
  std::list<std::string>::iterator place;
};

/// An exchange that is not over.
struct OpenExchange {
  std::string session;
  std::uint64_t thread = 0;
  bool final = false;
  int status = 0;
  bool is_read = true;  ///< What passes can be understood, and all of it did pass.
  bool waits = false;   ///< It was told that the server is not available.
  std::int64_t pieces = 0;
  std::optional<AnswerStream> answer;
  std::unique_ptr<TextLoop> loop;
  int chants = 0;                    ///< That were told.
  std::optional<Evidence> evidence;  ///< As told last,
  WallTime evidence_at{};            ///< and when.
};

}  // namespace

struct Chronicle::State {
  Options options;
  std::unordered_map<std::string, SessionMemory> talks;
  std::list<std::string> by_use;  ///< The latest first.
  std::map<std::uint64_t, OpenExchange> exchanges;
  std::unordered_map<std::uint64_t, std::string> owners;  ///< Sessions, by digests of answers' ids.
  std::deque<std::uint64_t> owned;                        ///< The same, the oldest first.

  // What is taken now.
  std::vector<Batch> batches;
  WallTime now{};

  explicit State(Options given) : options(given) {}

  void say(const std::string& session, Report report) {
    report.at = now;
    if (batches.empty() || batches.back().session != session) {
      batches.push_back({.session = session,
                         .creation = Creation::attach,
                         .spec = talks.at(session).spec,
                         .reports = {}});
    }
    batches.back().reports.push_back(std::move(report));
  }

  SessionMemory& talk_of(const std::string& session, const Attribution& from,
                         const std::string& model) {
    if (const auto found = talks.find(session); found != talks.end()) {
      by_use.splice(by_use.begin(), by_use, found->second.place);
      return found->second;
    }
    for (auto at = by_use.end(); talks.size() >= options.sessions_max && at != by_use.begin();) {
      --at;
      if (!talks.at(*at).open.empty()) continue;
      talks.erase(*at);
      at = by_use.erase(at);
    }
    by_use.push_front(session);
    auto& talk = talks[session];
    talk.place = by_use.begin();
    talk.spec.parent = from.parent;
    talk.spec.agent = first_characters(from.agent, label_bytes_max / 4);
    talk.spec.labels = {{"via", "proxy"}, {"attributed_by", std::string(name_of(from.by))}};
    if (!from.client.empty()) talk.spec.labels["client"] = from.client;
    if (!model.empty())
      talk.spec.labels["model"] = redact(first_characters(model, label_bytes_max / 4));
    return talk;
  }

  void remember_answer(const std::string& id, const std::string& session) {
    if (id.empty() || !owners.insert_or_assign(digest_of(id), session).second) return;
    owned.push_back(digest_of(id));
    if (owned.size() <= answers_per_session * options.sessions_max) return;
    owners.erase(owned.front());
    owned.pop_front();
  }

  // Heartbeats.

  /// What the session's requests got so far.
  Counters counters_of(SessionMemory& talk) const {
    double read = 0;
    double prompt = 0;
    double tokens = talk.tokens;
    for (const auto number : talk.open) {
      const auto& exchange = exchanges.at(number);
      tokens += tokens_of(exchange);
      if (!exchange.answer) continue;
      read += static_cast<double>(exchange.answer->heard().prompt_read);
      prompt += static_cast<double>(exchange.answer->heard().prompt_tokens);
    }
    talk.tokens_told = std::max(talk.tokens_told, tokens);
    Counters counters{{"tokens", talk.tokens_told}};
    if (read > 0) counters.emplace_back("prompt_read", read);
    if (prompt > 0) counters.emplace_back("prompt_tokens", prompt);
    return counters;
  }

  static double tokens_of(const OpenExchange& exchange) {
    const auto pieces = exchange.is_read && exchange.answer ? 0 : exchange.pieces;
    if (!exchange.answer) return static_cast<double>(pieces);
    const auto& heard = exchange.answer->heard();
    const auto told = heard.output_tokens > 0 ? heard.output_tokens : heard.pieces;
    return static_cast<double>(std::max(told, pieces));
  }

  void beat(const std::string& session, SessionMemory& talk, Source source, std::string phase,
            std::optional<std::int64_t> iteration = {}) {
    auto report = said(ReportKind::heartbeat);
    report.detail = Beats{.iteration_first = iteration,
                          .iteration = iteration,
                          .phase = std::move(phase),
                          .source = source,
                          .counters = counters_of(talk)};
    talk.beat_at = now;
    say(session, std::move(report));
  }

  /// So long after it was told last; the wall's clock may also have been set back.
  [[nodiscard]] bool is_due(WallTime told) const {
    return now - told >= options.beat_every || now < told;
  }

  void beat_if_due(const std::string& session, SessionMemory& talk) {
    if (is_due(talk.beat_at)) beat(session, talk, Source::relay, "model");
  }

  // One exchange.

  void begin(std::uint64_t number, const ExchangeBegan& began) {
    const auto request = model_request_from(began.method, began.target,
                                            began.body ? std::string_view(*began.body) : "");
    const auto from =
        attribution_of(began, request ? &*request : nullptr, [this](std::string_view answer) {
          const auto found = owners.find(digest_of(answer));
          return found == owners.end() ? std::string() : found->second;
        });
    if (!request && from.by > AttributedBy::native) return;
    auto& talk = talk_of(from.session, from, request ? request->model : std::string());
    if (!request) return beat(from.session, talk, Source::relay, {});

    if (exchanges.size() >= open_exchanges_max) forget(exchanges.begin()->first);
    if (std::exchange(talk.is_over, false)) {
      auto start = said(ReportKind::start);
      start.detail = ProcessFacts{};
      say(from.session, std::move(start));
    }
    const auto news = talk.conversation.ask(*request);
    auto& exchange = exchanges[number];
    exchange.session = from.session;
    exchange.thread = news.thread;
    exchange.final = from.final;
    ++talk.requests;
    talk.open.push_back(number);
    tell_news(from.session, news);

    // Whoever asks once more because there was no answer, or wants another one, did not go round.
    const bool goes_round = !news.repeated || news.calling;
    // A helper's request overtakes nobody's calls.
    const bool alone = !talk.conversation.has_open_calls(news.thread);
    beat(from.session, talk, goes_round ? Source::loop : Source::relay, "model",
         goes_round && alone ? std::optional(talk.requests) : std::nullopt);
  }

  void tell_news(const std::string& session, const News& news) {
    for (const auto& call : news.calls) say(session, call_report(call));
    for (const auto& result : news.results) {
      auto report = said(result.is_error ? ReportKind::error : ReportKind::tool_result, result.name,
                         result.content);
      report.call_id = result.call_id;
      say(session, std::move(report));
    }
    // What comes beside results comments on them; alone, it is something new to go by.
    if (!news.words.empty() && !news.results.empty())
      say(session, said(ReportKind::message, "user", news.words));
    if (!news.words.empty() && news.results.empty())
      say(session, said(ReportKind::state_change, "input", news.words));
    if (news.compacted) say(session, said(ReportKind::compaction));
    if (news.repeated) say(session, said(ReportKind::retry));
  }

  static Report call_report(const ToolRequest& call) {
    auto report = said(ReportKind::tool_call, call.name, call.arguments);
    report.call_id = call.id;
    return report;
  }

  void take(OpenExchange& exchange, const AnswerBegan& began) {
    exchange.status = began.status;
    const auto& coding = began.content_encoding;
    exchange.is_read = coding.empty() || coding == "identity";
    if (!exchange.is_read) return;
    exchange.loop = std::make_unique<TextLoop>();
    exchange.answer.emplace(
        began.status, began.content_type,
        [loop = exchange.loop.get()](std::string_view text) { (void)loop->feed(text); });
  }

  void take(OpenExchange& exchange, const AnswerPiece& piece) {
    ++exchange.pieces;
    auto& talk = talks.at(exchange.session);
    if (exchange.answer && exchange.is_read) {
      exchange.answer->feed(piece.bytes);
      tell_chants(exchange, {});
    }
    beat_if_due(exchange.session, talk);
  }

  /// Those that were not told yet, after the text's last piece.
  void tell_chants(OpenExchange& exchange, std::string_view last) {
    (void)exchange.loop->feed(last);
    for (; exchange.chants < exchange.loop->hits(); ++exchange.chants)
      say(exchange.session, said(ReportKind::chant, {}, std::string(exchange.loop->repeated())));
  }

  void tell_evidence(std::uint64_t number, OpenExchange& exchange, const Evidence& evidence,
                     const std::string& why) {
    if (!exchange.evidence && evidence.state <= ServerState::unknown) return;
    const bool is_new = !exchange.evidence || exchange.evidence->state != evidence.state;
    const bool moved = !is_new && *exchange.evidence != evidence;
    if (!is_new && !(moved && is_due(exchange.evidence_at))) return;
    exchange.evidence = evidence;
    exchange.evidence_at = now;
    const bool is_lost =
        evidence.state == ServerState::gone || evidence.state == ServerState::restarted;
    // What it got before: told later, it would end the wait.
    if (is_lost && !exchange.waits)
      beat(exchange.session, talks.at(exchange.session), Source::relay, {});
    auto report = said(ReportKind::evidence, {}, why);
    report.call_id = name_of_request(number);
    report.detail = evidence;
    say(exchange.session, std::move(report));
    if (is_lost) wait(exchange, why);
  }

  void wait(OpenExchange& exchange, const std::string& why) {
    if (std::exchange(exchange.waits, true)) return;
    say(exchange.session, said(ReportKind::wait, std::string(backend), why));
  }

  static std::string name_of_request(std::uint64_t number) {
    return "request-" + std::to_string(number);
  }

  /// Why there is no whole answer.
  struct Fault {
    std::string text;    ///< For people; empty: it is none.
    bool waits = false;  ///< The server is not available.
  };
  static Fault fault_of(const OpenExchange& exchange, const ExchangeEnded& ended) {
    static const HeardAnswer none;
    const auto& heard = exchange.answer ? exchange.answer->heard() : none;
    // Some clients hang up as soon as they have read that this is all.
    const bool all_said = exchange.is_read && heard.complete && heard.error.empty() &&
                          (ended.how == How::client_gone || ended.how == How::lost);
    if (ended.how != How::answered && !all_said) {
      return {.text = ended.message.empty() ? std::string(name_of(ended.how)) : ended.message,
              .waits = ended.how != How::client_gone && ended.how != How::stopped};
    }
    if (exchange.status >= 400) {
      return {.text = "HTTP " + std::to_string(exchange.status) +
                      (heard.error.empty() ? "" : ": " + heard.error),
              .waits = is_unavailable(exchange.status)};
    }
    if (!heard.error.empty()) return {.text = heard.error};
    const bool broke_off = exchange.is_read && heard.begun && !heard.complete && !heard.lost;
    if (!broke_off) return {};
    return {.text = "the answer broke off before its end", .waits = true};
  }

  void end(std::uint64_t number, OpenExchange& exchange, const ExchangeEnded& ended) {
    const std::string session = exchange.session;
    auto& talk = talks.at(session);
    if (exchange.answer) exchange.answer->end();
    if (exchange.answer && exchange.is_read) tell_chants(exchange, "\n");
    const auto fault = fault_of(exchange, ended);
    auto heard = exchange.answer ? exchange.answer->heard() : HeardAnswer{};
    const bool is_whole = fault.text.empty() && exchange.is_read && heard.complete && !heard.lost;
    if (!is_whole) heard.calls.clear();
    using Answer = Conversation::Answer;
    auto answer = is_whole ? Answer::whole : Answer::unread;
    if (!fault.text.empty()) answer = Answer::none;
    talk.conversation.answer(exchange.thread, answer, heard.calls, name_of_request(number));

    // With what it cost, before anything says that it is over.
    if (heard.calls.empty()) beat(session, talk, Source::relay, {});
    if (is_whole) tell_answer(exchange, talk, heard);
    if (is_whole) remember_answer(heard.id, session);
    if (!fault.text.empty() && ended.how != How::stopped)
      say(session, said(ReportKind::message, ended.how == How::client_gone ? "client" : "server",
                        fault.text));
    if (fault.waits) wait(exchange, fault.text);

    talk.tokens += tokens_of(exchange);
    talk.is_closing |= exchange.final;
    std::erase(talk.open, number);
    const bool closes = talk.open.empty() && std::exchange(talk.is_closing, false);
    const bool rests = answer != Answer::unread && ended.how != How::stopped && !exchange.waits;
    if (!closes && rests && talk.open.empty() && !talk.conversation.has_open_calls())
      say(session, said(ReportKind::idle));
    // Last: what was slow is not to be judged by its pace before it is known to be over.
    if (exchange.evidence && exchange.evidence->state != ServerState::over)
      tell_evidence(number, exchange, Evidence{.state = ServerState::over}, {});
    forget(number);
    if (closes) {
      auto report = said(ReportKind::end);
      report.detail = Outcome{.kind = OutcomeKind::completed,
                              .reason = std::string(reasons::task_complete),
                              .error = {}};
      say(session, std::move(report));
      talk.is_over = true;
    }
  }

  void tell_answer(const OpenExchange& exchange, SessionMemory& talk, const HeardAnswer& heard) {
    if (!heard.text.empty()) {
      auto report = said(ReportKind::message, "assistant", heard.text);
      // What was heard while it came is not heard again.
      mark(report);
      if (auto* marks = std::get_if<Marks>(&report.detail)) marks->chants = 0;
      say(exchange.session, std::move(report));
    }
    for (const auto& call : heard.calls) say(exchange.session, call_report(call));
    if (!heard.calls.empty()) beat(exchange.session, talk, Source::relay, "tools");
  }

  void forget(std::uint64_t number) {
    const auto found = exchanges.find(number);
    std::erase(talks.at(found->second.session).open, number);
    exchanges.erase(found);
  }
};

Chronicle::Chronicle(Options options) : state_(std::make_unique<State>(options)) {}
Chronicle::~Chronicle() = default;

std::vector<Batch> Chronicle::take(Observation observation) {
  State& state = *state_;
  state.now = observation.at;
  const auto number = observation.exchange;
  if (const auto* began = std::get_if<ExchangeBegan>(&observation.what)) {
    state.begin(number, *began);
    return std::exchange(state.batches, {});
  }
  const auto found = state.exchanges.find(number);
  if (found == state.exchanges.end()) return {};
  auto& exchange = found->second;
  if (const auto* answer = std::get_if<AnswerBegan>(&observation.what)) {
    state.take(exchange, *answer);
  } else if (const auto* piece = std::get_if<AnswerPiece>(&observation.what)) {
    state.take(exchange, *piece);
  } else if (std::holds_alternative<AnswerSkipped>(observation.what)) {
    exchange.is_read = false;
  } else if (const auto* seen = std::get_if<ExchangeEvidence>(&observation.what)) {
    state.tell_evidence(number, exchange, seen->evidence, seen->why);
  } else if (const auto* ended = std::get_if<ExchangeEnded>(&observation.what)) {
    state.end(number, exchange, *ended);
  }
  return std::exchange(state.batches, {});
}

std::vector<Batch> Chronicle::beat(WallTime now) {
  State& state = *state_;
  state.now = now;
  for (const auto& [number, exchange] : state.exchanges)
    state.beat_if_due(exchange.session, state.talks.at(exchange.session));
  return std::exchange(state.batches, {});
}

}  // namespace watchdog::monitor
