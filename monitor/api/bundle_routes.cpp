#include <memory>
#include <utility>

#include "api/routes.h"
#include "api/session_facts.h"

namespace watchdog::monitor {
namespace {

/// The facts of a request for a bundle, on their way from the reader's thread to the worker.
struct Collected {
  BundleFacts facts;
  AgentPlace place;
  std::string file_name;
};

void reply_with_bundle(const CallPtr& call, Collected& collected, bool asks_git,
                       const std::stop_token& stop) {
  try {
    add_present_facts(collected.facts, collected.place, asks_git, stop);
    if (call->bundles.looks) add_looks(collected.facts, *call->bundles.looks);
    call->reply({.body = bundle_archive(collected.facts),
                 .content_type = "application/x-tar",
                 .extra_headers = "Content-Disposition: attachment; filename=\"" +
                                  collected.file_name + "\"\r\n"});
  } catch (const std::exception&) {
    call->reply(error_response(503, "exhausted",
                               "the monitor has not enough memory for the bundle; try again"));
  }
}

Response too_many() {
  auto response = error_response(503, "exhausted", "too many bundles are being made; try again");
  response.extra_headers = "Retry-After: 5\r\n";
  return response;
}

}  // namespace

void get_bundle(const CallPtr& call) {
  const auto git = call->target.number("git", 1, 0, 1);
  if (!git) return call->reply(error_response(git.error()));
  const bool asks_git = *git == 1 && call->bundles.asks_git;
  reading(call, [call, asks_git](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto watched = look_up(call->backend, reader, *row);
    if (!watched) return call->reply(error_response(watched.error()));
    auto facts = stored_facts(call->backend, reader, *row, *watched);
    if (!facts) return call->reply(error_response(facts.error()));
    const auto collected = std::make_shared<Collected>(
        Collected{.facts = std::move(*facts),
                  .place = agent_place(*row, *watched),
                  .file_name = bundle_file_name(watched->description->directory, row->id)});
    // A command's file is read on the command's own thread, which waits for the reply.
    if (call->request.peer.empty()) return reply_with_bundle(call, *collected, asks_git, {});
    const bool is_taken =
        call->bundles.worker.add([call, collected, asks_git](const std::stop_token& stop) {
          reply_with_bundle(call, *collected, asks_git, stop);
        });
    if (!is_taken) call->reply(too_many());
  });
}

}  // namespace watchdog::monitor
