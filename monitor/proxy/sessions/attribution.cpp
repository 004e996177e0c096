// The surest name wins: our header, the path, a header of the client, telemetry of the same trace,
// a field of the body, the answer that is continued, the opening. A client's id stays as it is if
// it is valid and looks like no secret; otherwise it gets a digest. The opening counts together
// with address, program and key, because two agents may begin alike. The address loses its port,
// which differs with each connection. A subagent of Claude Code gets the id that its hooks use as
// well.
#include "proxy/sessions/attribution.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/trace_parent.h"
#include "privacy/content.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t readable_bytes_max = 40;
constexpr std::size_t client_chars_max = 64;

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// The header's value, the first of that name; empty: there is none. `name` is in lower case.
std::string_view header(const ExchangeBegan& began, std::string_view name) {
  for (const auto& [key, value] : began.headers)
    if (key.size() == name.size() && lowered(key) == name) return value;
  return {};
}

/// A client's own id as one of ours.
std::string session_id_from(std::string_view foreign) {
  const bool harmless = redact(foreign) == foreign;
  if (harmless && is_session_id(foreign)) return std::string(foreign);
  std::string id;
  if (harmless) {
    id = as_session_id(std::string(foreign.substr(0, readable_bytes_max))) + '-';
  }
  return id + hexadecimal(digest_of(foreign));
}

/// By which headers clients name their sessions. Claude Code, Codex and opencode as NVIDIA Dynamo's
/// table of agents has them; Open WebUI, LiteLLM, Helicone and llama.cpp as their manuals do.
struct NativeHeaders {
  std::string_view session;
  std::string_view parent;  ///< Names the session above; empty: nothing does.
  std::string_view agent;   ///< The agent with such a header; empty: any.
};
constexpr std::array native_headers{
    NativeHeaders{"x-claude-code-session-id", {}, "claude-code"},
    NativeHeaders{"x-dynamo-session-id", "x-dynamo-parent-session-id", {}},
    NativeHeaders{"x-session-id", "x-parent-session-id", {}},
    NativeHeaders{"x-session-affinity", "x-parent-session-id", {}},
    NativeHeaders{"session-id", {}, "codex"},
    NativeHeaders{"session_id", {}, "codex"},
    NativeHeaders{"x-openwebui-chat-id", {}, "open-webui"},
    NativeHeaders{"x-litellm-session-id", {}, {}},
    NativeHeaders{"helicone-session-id", {}, {}},
    NativeHeaders{"x-conversation-id", {}, {}},
};

/// Known programs by what their User-Agent begins with, in lower case.
struct KnownAgent {
  std::string_view prefix;
  std::string_view name;
};
constexpr std::array known_agents{
    KnownAgent{"claude-cli/", "claude-code"},
    KnownAgent{"claude-code/", "claude-code"},
    KnownAgent{"codex_", "codex"},
    KnownAgent{"codex/", "codex"},
    KnownAgent{"opencode/", "opencode"},
    KnownAgent{"geminicli", "gemini-cli"},
    KnownAgent{"google-genai-sdk/", "google-genai"},
    KnownAgent{"openai/python", "openai-python"},
    KnownAgent{"asyncopenai/", "openai-python"},
    KnownAgent{"openai/js", "openai-node"},
    KnownAgent{"anthropic/python", "anthropic-python"},
    KnownAgent{"asyncanthropic/", "anthropic-python"},
    KnownAgent{"anthropic/js", "anthropic-node"},
    KnownAgent{"ollama-python/", "ollama-python"},
    KnownAgent{"ollama-js/", "ollama-js"},
    KnownAgent{"ai-sdk/", "ai-sdk"},
    KnownAgent{"ai/", "ai-sdk"},
    KnownAgent{"litellm/", "litellm"},
    KnownAgent{"roo", "roo-code"},
    KnownAgent{"kilo", "kilo-code"},
};

/// The first word of a User-Agent: program and version.
std::string client_of(std::string_view user_agent) {
  const auto begin = std::min(user_agent.find_first_not_of(' '), user_agent.size());
  user_agent.remove_prefix(begin);
  auto end = user_agent.find_first_of(" ;(");
  // "OpenAI/Python 1.2.3" has its version behind the blank.
  if (end != std::string_view::npos && end + 1 < user_agent.size() && user_agent[end] == ' ' &&
      std::isdigit(static_cast<unsigned char>(user_agent[end + 1])) != 0)
    end = user_agent.find_first_of(" ;(", end + 1);
  std::string client = redact(first_characters(user_agent.substr(0, end), client_chars_max));
  for (char& c : client)
    if (c < ' ' || c > '~') c = '-';
  return client;
}

std::string agent_of(std::string_view client) {
  const auto lower = lowered(client);
  for (const auto& known : known_agents)
    if (lower.starts_with(known.prefix)) return std::string(known.name);
  return lower.substr(0, lower.find_first_of("/ "));
}

/// Copilot CLI asks through a library of its API, with a header of GitHub's own in each request.
/// The request for a summary has only the second one.
bool is_copilot(const ExchangeBegan& began, std::string_view agent) {
  const bool is_library = agent == "openai-node" || agent == "anthropic-node";
  const bool has_one =
      !header(began, "x-initiator").empty() || !header(began, "x-interaction-type").empty();
  return is_library && has_one;
}

/// Copilot CLI says for what it asks. It does not say which session a subagent belongs to.
void read_interaction(const ExchangeBegan& began, Attribution& found) {
  const auto interaction = header(began, "x-interaction-type");
  found.compacts = interaction == "conversation-compaction";
  found.helper = found.compacts || interaction == "conversation-subagent";
}

struct NamedSession {
  std::string session;
  std::string parent;
  std::string agent;
};

/// `x-NAME-session-id`, which many have.
std::string_view generic_name(std::string_view header) {
  constexpr std::string_view begin = "x-";
  constexpr std::string_view end = "-session-id";
  if (header.size() <= begin.size() + end.size() || !header.starts_with(begin) ||
      !header.ends_with(end))
    return {};
  const auto name = header.substr(begin.size(), header.size() - begin.size() - end.size());
  return name.ends_with("parent") ? std::string_view{} : name;
}

NamedSession native_session(const ExchangeBegan& began) {
  for (const auto& row : native_headers) {
    const auto value = header(began, row.session);
    if (value.empty()) continue;
    return {.session = std::string(value),
            .parent = std::string(row.parent.empty() ? row.parent : header(began, row.parent)),
            .agent = std::string(row.agent)};
  }
  for (const auto& [key, value] : began.headers) {
    const auto lower = lowered(key);
    const auto name = generic_name(lower);
    if (name.empty() || value.empty()) continue;
    return {.session = value,
            .parent = std::string(header(began, "x-" + std::string(name) + "-parent-session-id")),
            .agent = {}};
  }
  return {};
}

/// An agent within Claude Code or Codex has a session of its own, as in its hooks. For Codex every
/// agent is a thread, and the first one has the session's id.
/// `own`: the first one as its client calls it.
void read_subagent(const ExchangeBegan& began, std::string_view own, Attribution& found) {
  auto agent = header(began, "x-claude-code-agent-id");
  auto parent = header(began, "x-claude-code-parent-agent-id");
  if (const auto above = header(began, "x-codex-parent-thread-id"); !above.empty()) {
    agent = header(began, "thread-id");
    parent = above;
  }
  const auto session = found.session;
  const auto below = [&](std::string_view name) {
    if (name.empty() || name == own || session_id_from(name) == session) return session;
    return session_id_from(session + ":" + std::string(name));
  };
  found.session = below(agent);
  if (found.session != session) found.parent = below(parent);
}

std::string named_in_body(const ModelRequest& request, const AnswerOwner& owner, AttributedBy& by) {
  const auto& names = request.names;
  by = AttributedBy::body;
  for (const auto* name : {&names.session, &names.cache_key, &names.conversation})
    if (!name->empty()) return session_id_from(*name);
  if (!names.previous_response.empty() && owner) {
    by = AttributedBy::chain;
    if (auto session = owner(names.previous_response); !session.empty()) return session;
    by = AttributedBy::body;
  }
  return names.user.empty() ? std::string() : session_id_from(names.user);
}

/// The client's address without its port, which changes with each connection.
std::string_view host_of(std::string_view peer) {
  const auto colon = peer.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (peer.find(':') == colon || peer[colon - 1] == ']');
  return has_port ? peer.substr(0, colon) : peer;
}

std::string session_of_opening(const ExchangeBegan& began, const ModelRequest* request,
                               std::string_view agent) {
  auto digest = combined(digest_of(host_of(began.peer)), digest_of(header(began, "user-agent")));
  digest = combined(digest, began.key_digest);
  if (request != nullptr) digest = combined(digest, request->opening);
  // How it begins is not known. One client's requests usually share a connection.
  if (request != nullptr && request->is_cut && request->opening == 0)
    digest = combined(digest, began.connection);
  return session_id_from(std::string(agent.empty() ? "client" : agent) + "-" + hexadecimal(digest));
}

/// Telemetry names a session more surely than a body or an opening does.
void join_trace(const ExchangeBegan& began, const TraceOwner& tracer, Attribution& found) {
  const auto trace = tracer ? trace_in(header(began, "traceparent")) : std::string();
  if (trace.empty()) return;
  const auto session = tracer(trace, found.session);
  if (session.empty()) return;
  found.by = AttributedBy::trace;
  found.session = session_id_from(session);
}

}  // namespace

std::optional<ModelRequest> model_request_of(const ExchangeBegan& began) {
  const auto body = began.body ? std::string_view(*began.body) : std::string_view();
  return began.body_is_cut ? model_request_from_beginning(began.method, began.target, body)
                           : model_request_from(began.method, began.target, body);
}

Attribution attribution_of(const ExchangeBegan& began, const ModelRequest* request,
                           const AnswerOwner& owner, const TraceOwner& tracer) {
  Attribution found;
  found.client = client_of(header(began, "user-agent"));
  found.agent = agent_of(found.client);
  if (is_copilot(began, found.agent)) {
    found.agent = "copilot-cli";
    read_interaction(began, found);
  }
  found.final = lowered(header(began, "x-dynamo-session-final")) == "true";
  // Codex' terminal interface has titles made by a thread, and thus a session, of their own.
  found.helper = found.helper ||
                 header(began, "x-codex-turn-metadata").find(R"("thread_source":"thread_title")") !=
                     std::string_view::npos;

  const auto own = header(began, "x-watchdog-session");
  auto native = native_session(began);
  if (!native.agent.empty()) found.agent = native.agent;
  std::string parent(header(began, "x-watchdog-parent-session"));
  if (!own.empty()) {
    found.by = AttributedBy::header;
    found.session = session_id_from(own);
  } else if (!began.session.empty()) {
    found.by = AttributedBy::path;
    found.session = session_id_from(began.session);
  } else if (!began.process_session.empty()) {
    found.by = AttributedBy::process;
    found.session = session_id_from(began.process_session);
    read_subagent(began, native.session, found);
  } else if (!native.session.empty()) {
    found.by = AttributedBy::native;
    found.session = session_id_from(native.session);
    if (parent.empty()) parent = native.parent;
    read_subagent(began, native.session, found);
  } else {
    if (request != nullptr) found.session = named_in_body(*request, owner, found.by);
    if (found.session.empty()) {
      found.by = AttributedBy::opening;
      found.session = session_of_opening(began, request, found.agent);
    }
    join_trace(began, tracer, found);
  }
  if (!parent.empty()) found.parent = session_id_from(parent);
  if (found.parent == found.session) found.parent.clear();
  return found;
}

}  // namespace watchdog::monitor
