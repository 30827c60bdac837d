from holdfast.daemon import main

main()
