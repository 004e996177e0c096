include(GoogleTest)

# gtests(PROGRAM [FILTER PATTERN] [PROPERTY VALUE]...): makes each test of PROGRAM a test of ctest. Under a sanitizer
# each start of PROGRAM costs half a second, which is more than most tests take. There ctest runs PROGRAM in parts
# instead, and a part names its failed tests in its output.
function(gtests program)
  cmake_parse_arguments(PARSE_ARGV 1 gtests "" "FILTER" "")
  if(NOT WATCHDOG_SANITIZE)
    gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST PROPERTIES ${gtests_UNPARSED_ARGUMENTS})
    return()
  endif()
  set(command ${program} --gtest_brief=1)
  if(gtests_FILTER)
    list(APPEND command --gtest_filter=${gtests_FILTER})
  endif()
  set(parts 6)
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    add_test(NAME ${program}.${part} COMMAND ${command})
    set_tests_properties(${program}.${part} PROPERTIES ${gtests_UNPARSED_ARGUMENTS} TIMEOUT 900
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${part}")
  endforeach()
endfunction()
