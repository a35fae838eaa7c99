# The version of cuplug-config.cmake: one that is asked for is served by the same first number, and
# by no less.
set(PACKAGE_VERSION "0.1.0")
if(PACKAGE_FIND_VERSION_MAJOR EQUAL 0 AND NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
