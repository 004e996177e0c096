# Moves files that CMake installed to where Fedora and openSUSE have them.
if(NOT EXISTS ${CPACK_WATCHDOG_STATIC})
  message(FATAL_ERROR "RPM packages carry the static program. Build the target watchdog-monitor-static first")
endif()
# The programs of the demo need libraries of Debian.
file(REMOVE_RECURSE ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/bin)
file(COPY ${CPACK_WATCHDOG_STATIC} DESTINATION ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/bin
     FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
file(RENAME ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/bin/watchdog-monitor-static
     ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/bin/watchdog-monitor)
execute_process(COMMAND strip ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/bin/watchdog-monitor COMMAND_ERROR_IS_FATAL ANY)

foreach(component lib dev)
  set(usr ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  file(RENAME ${usr}/lib ${usr}/lib64)
  file(GLOB_RECURSE texts ${usr}/lib64/*.pc ${usr}/lib64/*.cmake)
  foreach(name ${texts})
    file(READ ${name} text)
    string(REPLACE "{prefix}/lib\n" "{prefix}/lib64\n" text "${text}")
    string(REPLACE "_IMPORT_PREFIX}/lib/" "_IMPORT_PREFIX}/lib64/" text "${text}")
    file(WRITE ${name} "${text}")
  endforeach()
endforeach()
foreach(component monitor lib dev)
  string(TOUPPER ${component} upper)
  set(licence ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/licenses/${CPACK_RPM_${upper}_PACKAGE_NAME})
  configure_file(${CPACK_WATCHDOG_SOURCE}/LICENSE ${licence}/LICENSE COPYONLY NO_SOURCE_PERMISSIONS)
endforeach()
