"""The 80 class names of COCO, in the order that detectors trained on it use."""

COCO_NAMES = tuple(
    """person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,parking meter,
bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,frisbee,skis,
snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,
knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,potted plant,bed,
dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,book,clock,
vase,scissors,teddy bear,hair drier,toothbrush""".replace("\n", "").split(",")
)

# COCO numbers its categories up to 90, with gaps: these are the 80 that exist, in the order of the names.
_GAPS = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
CATEGORY_COLUMNS = 91
COCO_CATEGORIES = tuple(number for number in range(1, CATEGORY_COLUMNS) if number not in _GAPS)
